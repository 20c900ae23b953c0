/** 16-bit parameters without float32 copies, which programs ask for before they use them: who does not, does not ship their kernels. */
import { enableStochasticRounding as enable } from "@opt/core";
import { WasmBackend } from "./backend";
import { isDrawn, randomAccess, randomRule } from "./emit/rounding";
import { further } from "./emit/rule";
import { brought } from "./emit/stored";

/** Enables stochastic rounding of 16-bit parameters on "wasm" (`stochasticRounding`); see `enableStochasticRounding` of `@opt/core`. */
export function enableStochasticRounding(): void {
  enable();
  if (WasmBackend.prototype.draws) return;
  Object.assign(WasmBackend.prototype, { draws: true });
  Object.assign(brought, randomAccess());
  further.unshift((spec) => isDrawn(spec) && randomRule);
}
