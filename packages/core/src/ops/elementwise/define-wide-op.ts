/** Elementwise ops that are computed in float64: of integers, which stay integers, or of all smaller floats. */
import { check } from "../../errors/errors";
import { Tensor } from "../../tensor/tensor";
import { isFloat, promote } from "../../values/dtype";
import { computeIn } from "../cast";
import { checkNumbers, checkTensor } from "../check-tensor";
import type { OpDefinition } from "../definition";
import { type DefinedOp, defineOp, type OperandsOf } from "./define-op";

interface WideOpDefinition extends OpDefinition {
  /** Integers give integers, computed in float64. */
  readonly keepsIntegers?: boolean;
  /** Smaller floats are computed in float64, where the device has it: its formulas lose digits. */
  readonly isWide?: boolean;
}

/** @returns the op, which throws OptError BAD_ARGUMENT, BAD_DTYPE, BAD_SHAPE, DEVICE_MISMATCH */
export function defineWideOp<const Definition extends WideOpDefinition>(
  definition: Definition,
): DefinedOp<OperandsOf<Definition>> {
  const { name, inputs, keepsIntegers = false, isWide = false } = definition as WideOpDefinition;
  const launch = defineOp(definition as OpDefinition) as (...operands: (Tensor | number)[]) => Tensor;
  const op = (...operands: (Tensor | number)[]): Tensor => {
    if (operands.length > inputs) operands.length = inputs;
    if (inputs === 1) checkTensor(name, operands[0]);
    const tensors = operands.filter((each) => each instanceof Tensor);
    const areWhole = operands.every((each) => (each instanceof Tensor ? !isFloat(each.dtype) : Number.isInteger(each)));
    const staysWhole = keepsIntegers && areWhole;
    const [first] = tensors;
    if (first === undefined || !(staysWhole || isWide)) return launch(...operands);
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
      launch(...operands.map((each) => (each instanceof Tensor ? wide.shift()! : each))),
    );
  };
  return Object.assign(op as (...operands: OperandsOf<Definition>) => Tensor, { definition });
}
