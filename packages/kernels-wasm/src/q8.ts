/** State in 8 bits, which programs ask for before they use it: who does not, does not ship its kernels. */
import { enableQ8 as enable } from "@opt/core";
import { isPacked, type Launch, type Spec } from "@opt/core/backend";
import { WasmBackend } from "./backend";
import { packedRule } from "./emit/packed";
import { rule } from "./emit/rule";

/** Lets optimizers keep their state in 8 bits on "wasm", by `stateDType: "q8"`; see `enableQ8` of `@opt/core`. */
export function enableQ8(): void {
  enable();
  if (WasmBackend.prototype.packs) return;
  const plain = { ...rule };
  const sourceOf = ({ stored }: Spec<"rule">) => (stored?.some(isPacked) ? packedRule : plain);
  Object.assign(WasmBackend.prototype, { packs: true });
  Object.assign(rule, {
    emit: (spec, target) => sourceOf(spec).emit(spec, target),
    launch: (launch: Launch<"rule">, execution) => sourceOf(launch.kernel.spec).launch(launch, execution),
  } satisfies typeof rule);
}
