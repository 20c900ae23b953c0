/** Elementwise ops by definition: the function, and what tests, tables and documentation know of it, follow. */
import { check } from "../../errors/errors";
import { Tensor } from "../../tensor/tensor";
import { isFloat, promote } from "../../values/dtype";
import { computeIn } from "../cast";
import { checkNumbers, checkTensor } from "../check-tensor";
import type { OpDefinition } from "../definition";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";

export interface DefinedOp<Operands extends readonly unknown[]> {
  (...operands: Operands): Tensor;
  /** @internal */
  readonly definition: OpDefinition;
}

type Operands = readonly (Tensor | number)[];
type OperandsOf<Definition extends OpDefinition> = Definition["inputs"] extends 1
  ? [x: Tensor]
  : Definition["inputs"] extends 2
    ? [a: Tensor | number, b: Tensor | number]
    : [a: Tensor | number, b: Tensor | number, c: Tensor | number];

/** @returns the op, which throws OptError BAD_ARGUMENT, BAD_DTYPE, BAD_SHAPE, DEVICE_MISMATCH */
export function defineOp<const Definition extends OpDefinition>(
  definition: Definition,
): DefinedOp<OperandsOf<Definition>> {
  const { name, inputs, rounds = false, keepsIntegers = false, isWide = false } = definition as OpDefinition;
  const launch = (operands: Operands): Tensor =>
    elementwise(extended(name, definition), rounds ? [...operands, wholeFrom(operands)] : operands, name);
  const op = (...operands: (Tensor | number)[]): Tensor => {
    if (operands.length > inputs) operands.length = inputs; // as in xs.map(relu)
    if (inputs === 1) checkTensor(name, operands[0]);
    if (!keepsIntegers && !isWide) return launch(operands);
    const tensors = operands.filter((each) => each instanceof Tensor);
    const areWhole = operands.every((each) => (each instanceof Tensor ? !isFloat(each.dtype) : Number.isInteger(each)));
    const staysWhole = keepsIntegers && areWhole;
    const [first] = tensors;
    if (first === undefined || !(staysWhole || isWide)) return launch(operands);
    for (const tensor of tensors) checkNumbers(name, tensor);
    const dtype = tensors.map((each) => each.dtype).reduce(promote);
    const result = staysWhole ? (dtype === "bool" ? "i32" : dtype) : isFloat(dtype) ? dtype : "f32";
    // All of i32 are exact in float64.
    const compute = first.device.backend.dtypes.includes("f64") ? "f64" : "f32";
    check(
      compute === "f64" || !staysWhole || dtype !== "i32",
      "UNSUPPORTED",
      name,
      () => `i32 is divided in float64, which ${first.device.name} has not.`,
      'Use x.to("f32"), or another device.',
    );
    return computeIn(compute, tensors, result, (...wide) =>
      launch(operands.map((each) => (each instanceof Tensor ? wide.shift()! : each))),
    );
  };
  return Object.assign(op as (...operands: OperandsOf<Definition>) => Tensor, { definition });
}

/** 16-bit floats and, for true division, integers are computed in 32 bits. */
function wholeFrom(operands: Operands): number {
  return operands.some((each) => each instanceof Tensor && each.dtype === "f64") ? 2 ** 52 : 2 ** 23;
}
