/** Elementwise ops by definition: the function, and what tests, tables and documentation know of it, follow. */
import { check } from "../../errors/errors";
import type { Expression } from "../../rule/expression";
import { Tensor } from "../../tensor/tensor";
import { isFloat, promote } from "../../values/dtype";
import { computeIn } from "../cast";
import { checkNumbers, checkTensor } from "../check-tensor";
import { elementwise } from "./elementwise";
import { type ElementwiseDefinition, extended } from "./elementwise-table";

/** Formulas of rules: so every device, dtype, second gradients and compiled functions follow. */
export interface OpDefinition extends Pick<ElementwiseDefinition, "recorded" | "flat" | "result"> {
  readonly name: string;
  /** PyTorch's expression of `a`, and of `b` for an op of two: "torch.xlogy(a, b)". */
  readonly torch: string;
  readonly inputs: 1 | 2;
  /** From which numbers tests draw. Default: -1.5 to 1.5, and special ones. */
  readonly domain?: {
    readonly low?: number;
    readonly high?: number;
    readonly positive?: boolean;
    readonly finite?: boolean;
  };
  /** The operands, then `whole`, if `rounds`. */
  readonly forward: (...operands: Expression[]) => Expression;
  /** For each operand, from the gradient g, the result y and the operands; null where none flows. */
  readonly gradients: ElementwiseDefinition["derivatives"];
  /** The last operand of its formulas is the number from which on all floats of the dtype are whole: 2^23, or 2^52. */
  readonly rounds?: boolean;
  /** Integers give integers, computed in float64. */
  readonly keepsIntegers?: boolean;
  /** Smaller floats are computed in float64, where the device has it: its formulas lose digits. */
  readonly isWide?: boolean;
}

export interface DefinedOp<Operands extends readonly unknown[]> {
  (...operands: Operands): Tensor;
  /** @internal */
  readonly definition: OpDefinition;
}

type OperandsOf<Definition extends OpDefinition> = Definition["inputs"] extends 1
  ? [x: Tensor]
  : [a: Tensor | number, b: Tensor | number];

/** @returns the op, which throws OptError BAD_ARGUMENT, BAD_DTYPE, BAD_SHAPE, DEVICE_MISMATCH */
export function defineOp<const Definition extends OpDefinition>(
  definition: Definition,
): DefinedOp<OperandsOf<Definition>> {
  const {
    name,
    inputs,
    forward,
    gradients,
    rounds = false,
    keepsIntegers = false,
    isWide = false,
    torch: _,
    domain: __,
    ...more
  } = definition;
  const derivatives = rounds ? [...gradients, null] : gradients;
  const launch = (operands: readonly (Tensor | number)[]): Tensor => {
    const known = extended(name, { ...more, forward, derivatives, result: more.result ?? "float" });
    return elementwise(known, rounds ? [...operands, wholeFrom(operands)] : operands);
  };
  const op = (...operands: readonly (Tensor | number)[]): Tensor => {
    if (inputs === 1) checkTensor(name, operands[0]);
    check(operands.length === inputs, "BAD_ARGUMENT", name, () => `takes ${inputs} operands, got ${operands.length}.`);
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
function wholeFrom(operands: readonly (Tensor | number)[]): number {
  return operands.some((each) => each instanceof Tensor && each.dtype === "f64") ? 2 ** 52 : 2 ** 23;
}
