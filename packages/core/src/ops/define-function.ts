/** Functions that compose ops, by definition: what tests, tables and documentation know of them follows. */
import { tidy } from "../device/scope";
import type { Tensor } from "../tensor/tensor";
import { checkTensor } from "./check-tensor";

export interface FunctionDefinition {
  readonly name: string;
  /** PyTorch's expression of `a`, `b` and of `arguments`: "torch.outer(a, b)". */
  readonly torch: string;
  /** Each tensor that comes first, by letters for its extents: "nm" has two axes, and each n is as long; "3" is 3. */
  readonly tensors: readonly string[];
  /** What follows them in tests. */
  readonly arguments?: readonly unknown[];
}

type Composed = (...given: never[]) => Tensor | readonly Tensor[];

/** @returns the function. It frees what it makes on its way, and throws OptError BAD_ARGUMENT for what is no tensor */
export function defineFunction<Call extends Composed>(
  definition: FunctionDefinition,
  call: Call,
): Call & { readonly definition: FunctionDefinition } {
  const { name, tensors } = definition;
  const composed = (...given: readonly unknown[]) => {
    for (let i = 0; i < tensors.length; i++) checkTensor(name, given[i], "ab"[i]!);
    return tidy(() => call(...(given as never[])));
  };
  return Object.assign(composed as unknown as Call, { definition });
}
