/** What a C-like language must know to write a program out: a table of text per op. */

import type { BitOp, Op } from "../rule/expression";
import type { ComputeDType } from "../values/dtype";

/** Writes one op on operand texts. Operands are names, constants or parenthesised calls: no precedence to mind. */
export type OpText = (a: string, b: string, c: string) => string;

export type OpTexts = Readonly<Record<ComputeDType, OpText>>;

export interface Dialect {
  readonly name: string;
  /** Text of a number in the dtype, exact, including infinities, NaN and -0. */
  constant(value: number, dtype: ComputeDType): string;
  /** Declares a local that never changes. */
  declare(name: string, value: string, dtype: ComputeDType, kind: "number" | "condition"): string;
  /** A new op does not compile until every dialect has its line. Moves of bits are of dialects that write the definitions of functions. */
  readonly ops: Readonly<Record<Op, OpTexts> & Partial<Record<BitOp, OpTexts>>>;
}
