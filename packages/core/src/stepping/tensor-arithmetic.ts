/** The arithmetic of scalars where some are tensors: each op is one on tensors of one element, and what involves none stays a number. */
import { OptError } from "../errors/errors";
import { cast, elementwise } from "../ops";
import type { Arithmetic } from "../optimizer/algorithm";
import { nodeOf, type OpName } from "../rule/expression";
import { NUMBERS } from "../rule/interpret";
import type { Tensor } from "../tensor/tensor";

/** A tensor among an algorithm's numbers. A tensor itself would turn into a number under JavaScript's operators, and its gradient be lost. */
export class Quantity {
  constructor(readonly tensor: Tensor) {}

  [Symbol.toPrimitive](): never {
    throw new OptError(
      "UNSUPPORTED",
      "functional",
      "an option that is a tensor must be computed with by `arithmetic`, got an operator of JavaScript.",
      "Pass a number, or write advance and scalars of the optimizer with sub(1, lr) in place of 1 - lr.",
    );
  }
}

type Term = Quantity | number;

/** `rounds`: what PyTorch keeps in float32 by default (NAdam's product) is rounded. */
export function tensorArithmetic(rounds: boolean): Arithmetic {
  const applied =
    (op: keyof Arithmetic) =>
    (...terms: Term[]): Term => {
      if (op === "fround" && !rounds) return terms[0]!;
      const operands = terms.map((term) => (term instanceof Quantity ? term.tensor : term));
      if (operands.every((operand) => typeof operand === "number")) {
        const [a, b, c] = operands as number[];
        return NUMBERS[op](a!, b!, c!);
      }
      return new Quantity(
        op === "fround" ? rounded(operands[0] as Tensor) : elementwise(nodeOf(op as OpName), operands),
      );
    };
  const ops = Object.keys(NUMBERS) as (keyof Arithmetic)[];
  return Object.fromEntries(ops.map((op) => [op, applied(op)])) as unknown as Arithmetic;
}

/** x in float32 as a float64; its gradient is that of x. The difference and the sum are exact. */
function rounded(x: Tensor): Tensor {
  const value = x.detach();
  const change = elementwise("sub", [cast(cast(value, "f32"), x.dtype), value]);
  return elementwise("add", [x, change]);
}
