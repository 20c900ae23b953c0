/** Calls of functions that `defineFunction` of core made, as their definitions say. */
import type { FunctionDefinition, Tensor } from "@opt/core";

export interface DefinedTensor {
  readonly shape: readonly number[];
  /** Floats if undefined. */
  readonly dtype: "i32" | "bool" | undefined;
  /** Integers and booleans are below it. */
  readonly below: number;
}

/** The tensors that a function takes. @param extentOf of a letter */
export function tensorsOf({ tensors }: FunctionDefinition, extentOf: (letter: string) => number): DefinedTensor[] {
  return tensors.map((text) => {
    const [letters = "", dtype] = text.split(" ").reverse() as [string?, ("i32" | "bool")?];
    const shape = [...letters].map((letter) => Number(letter) || extentOf(letter));
    return { shape, dtype, below: dtype === "bool" ? 2 : 3 };
  });
}

/** What a function is called with. */
export function argumentsOf(
  { isList = false, between = [], arguments: more = [] }: FunctionDefinition,
  tensors: readonly Tensor[],
): unknown[] {
  const [first, ...others] = tensors;
  return isList ? [tensors, ...more] : [first, ...between, ...others, ...more];
}

/** The tensors of a result. */
export function resultsOf(result: object): readonly Tensor[] {
  if (Array.isArray(result)) return result as readonly Tensor[];
  return "shape" in result ? [result as Tensor] : (Object.values(result) as Tensor[]);
}
