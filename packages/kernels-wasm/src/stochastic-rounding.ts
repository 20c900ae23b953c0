/** 16-bit parameters without float32 copies, which programs ask for before they use them: who does not, does not ship their kernels. */
import { enableStochasticRounding as enable } from "@opt/core";
import { WasmBackend } from "./backend";
import { brought } from "./emit/stored";
import { isDrawn, randomAccess, randomRule } from "./kernels/rule/rounding";
import { further } from "./kernels/rule/rule";

/** Enables stochastic rounding of 16-bit parameters on "wasm" (`stochasticRounding`); see `enableStochasticRounding` of `@opt/core`. */
export function enableStochasticRounding(): void {
  enable();
  if (WasmBackend.prototype.draws) return;
  Object.assign(WasmBackend.prototype, { draws: true });
  Object.assign(brought, randomAccess());
  further.unshift((spec) => isDrawn(spec) && randomRule);
}
