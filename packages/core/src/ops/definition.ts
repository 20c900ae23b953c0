/** What an op says of itself: its function, and what tests, tables and documentation know of it, follow. */
import type { Expression } from "../rule/expression";

/** From which numbers tests draw. Default: -1.5 to 1.5, and special ones. */
export interface Domain {
  readonly low?: number;
  readonly high?: number;
  readonly positive?: boolean;
  /** Gradients are compared of finite numbers only. */
  readonly finite?: boolean;
  /** PyTorch's second gradients of 0 are others, or none. */
  readonly nonZero?: boolean;
}

interface Definition {
  /** PyTorch's expression of `a`, `b`, `c`, and of `arguments`, of which $0 is the first: "a.sum($0, keepdim=$1)". Behind " # ", what users know. */
  readonly torch: string;
  readonly domain?: Domain;
  /** What follows the tensors in tests: "$axis" is any axis of the first one, "$flag" true or false. "$a" and "$b" place tensors among them. */
  readonly arguments?: readonly unknown[];
}

/** A function with kernels of its own; its name is that of its export. */
export interface PrimitiveDefinition extends Definition {
  /**
   * Each tensor that comes first, by letters for its extents: "nm" has two axes, and each n is as long; "3" is 3. "..." is any axes, of
   * all tensors the same, and "...+" those without an extent of 0. "bool n" is a mask, "i32 n" holds 0, 1 and 2, and "i32 n <m" whole
   * numbers below m. Default: one of any axes.
   */
  readonly tensors?: readonly string[];
  /** The tensors are given as one list. */
  readonly isList?: boolean;
  /** What is between the first tensor and the others in tests. */
  readonly between?: readonly unknown[];
  /** No gradient flows. */
  readonly isFlat?: boolean;
}

/** A function that composes ops. */
export interface FunctionDefinition extends PrimitiveDefinition {
  readonly name: string;
}

/** What the launches of an elementwise op are made of: formulas of rules, so every device, dtype, second gradients and compiled functions follow. */
export interface ElementwiseDefinition {
  /** The operands, then `whole`, if `rounds`. */
  readonly forward: (...operands: Expression[]) => Expression;
  /** For each operand, from the gradient g, the result y and the operands; null where none flows. */
  readonly gradients: readonly (((g: Expression, y: Expression, ...operands: Expression[]) => Expression) | null)[];
  /** The same where the gradient is differentiated again: what holds exactly, if `gradients` lean on a rounded y. */
  readonly recorded?: ElementwiseDefinition["gradients"];
  /** The operands whose gradient is piecewise constant in them, and has zeros as its own gradient in PyTorch rather than null. */
  readonly flat?: readonly number[];
  /** Its last operand, without a gradient, is the number from which on all floats of the dtype are whole: 2^23, or 2^52. */
  readonly rounds?: boolean;
  /** What integers and booleans give. Default: a float, as torch's true division. */
  readonly result?: "float" | "bool" | "integer";
  /** torch.autocast computes it in float32. */
  readonly autocast?: "f32";
}

export interface OpDefinition extends ElementwiseDefinition, Definition {
  readonly name: string;
  readonly inputs: 1 | 2 | 3;
}
