/** Elementwise ops by definition: the function, and what tests, tables and documentation know of it, follow. */
import { Tensor } from "../../tensor/tensor";
import { checkTensor } from "../check-tensor";
import type { OpDefinition } from "../definition";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";

export interface DefinedOp<Operands extends readonly unknown[]> {
  (...operands: Operands): Tensor;
  /** @internal */
  readonly definition: OpDefinition;
}

type Operands = readonly (Tensor | number)[];
export type OperandsOf<Definition extends OpDefinition> = Definition["inputs"] extends 1
  ? [x: Tensor]
  : Definition["inputs"] extends 2
    ? [a: Tensor | number, b: Tensor | number]
    : [a: Tensor | number, b: Tensor | number, c: Tensor | number];

/** @returns the op, which throws OptError BAD_ARGUMENT, BAD_DTYPE, BAD_SHAPE, DEVICE_MISMATCH */
export function defineOp<const Definition extends OpDefinition>(
  definition: Definition,
): DefinedOp<OperandsOf<Definition>> {
  const { name, gradients, rounds = false } = definition as OpDefinition;
  const inputs = gradients.length;
  const op = (...operands: (Tensor | number)[]): Tensor => {
    if (operands.length > inputs) operands.length = inputs; // as in xs.map(relu)
    if (inputs === 1) checkTensor(name, operands[0]);
    return elementwise(extended(name, definition), rounds ? [...operands, wholeFrom(operands)] : operands, name);
  };
  return Object.assign(op as (...operands: OperandsOf<Definition>) => Tensor, { definition });
}

/** 16-bit floats and, for true division, integers are computed in 32 bits. */
function wholeFrom(operands: Operands): number {
  return operands.some((each) => each instanceof Tensor && each.dtype === "f64") ? 2 ** 52 : 2 ** 23;
}
