/** State in 8 bits, which programs ask for before they use it: who does not, does not ship its kernels. */
import { enableQ8 as enable } from "@opt/core";
import { isPacked } from "@opt/core/backend";
import { WasmBackend } from "./backend";
import { packedRule } from "./kernels/rule/packed";
import { further } from "./kernels/rule/rule";

/** Lets optimizers keep their state in 8 bits on "wasm", by `stateDType: "q8"`; see `enableQ8` of `@opt/core`. */
export function enableQ8(): void {
  enable();
  if (WasmBackend.prototype.packs) return;
  Object.assign(WasmBackend.prototype, { packs: true });
  further.push(({ stored }) => Boolean(stored?.some(isPacked)) && packedRule);
}
