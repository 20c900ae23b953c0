/** Functions that compose ops, by definition: what tests, tables and documentation know of them follows. */
import { tidy } from "../device/scope";
import { checkTensor, checkTensors } from "./check-tensor";

export interface FunctionDefinition {
  readonly name: string;
  /** PyTorch's expression of `a`, `b` and of `arguments`: "torch.outer(a, b)". */
  readonly torch: string;
  /**
   * Each tensor that comes first, by letters for its extents: "nm" has two axes, and each n is as long; "3" is 3. "i32 n3" holds 0, 1 and
   * 2, "bool n" a mask.
   */
  readonly tensors: readonly string[];
  /** The tensors are given as one list. */
  readonly isList?: boolean;
  /** What is between the first tensor and the others in tests. */
  readonly between?: readonly unknown[];
  /** What follows them in tests. */
  readonly arguments?: readonly unknown[];
  /** No gradient flows. */
  readonly isFlat?: boolean;
}

/** Gives a tensor, a list of tensors or an object of them. */
type Composed = (...given: never[]) => object;

/** @returns the function. It frees what it makes on its way, and throws OptError BAD_ARGUMENT for what is no tensor */
export function defineFunction<Call extends Composed>(
  definition: FunctionDefinition,
  call: Call,
): Call & { readonly definition: FunctionDefinition } {
  const { name, tensors, isList = false, between = [] } = definition;
  const composed = (...given: readonly unknown[]) => {
    if (isList) checkTensors(name, given[0]);
    else for (let i = 0; i < tensors.length; i++) checkTensor(name, given[i === 0 ? 0 : i + between.length], "abc"[i]!);
    return tidy(() => call(...(given as never[])));
  };
  return Object.assign(composed as unknown as Call, { definition });
}
