/** Expressions with the sign of others, which take less to compute. */
import type { Expression } from "../../rule/expression";
import { div, mul, neg } from "../../rule/symbols";

const NON_NEGATIVE_OF_SUCH = ["add", "mul", "div", "fma", "max", "min"];

/** True for what is at least 0, or NaN, where these symbols are. */
function isNonNegative(x: Expression, symbols: ReadonlySet<Expression>): boolean {
  const { op, args, value } = x;
  if (op === "sqrt" || op === "abs" || symbols.has(x)) return true;
  if (op === "constant") return value >= 0;
  return NON_NEGATIVE_OF_SUCH.includes(op) && args.every((arg) => isNonNegative(arg, symbols));
}

/** An expression with the sign of `x`, without factors and divisors that are not negative. `nonNegative`: symbols that never are. */
export function signOf(x: Expression, nonNegative: ReadonlySet<Expression>): Expression {
  const [a, b, c] = x.args as [Expression, Expression, Expression];
  const isFactor = (factor: Expression) => isNonNegative(factor, nonNegative);
  switch (x.op) {
    case "neg":
      return neg(signOf(a, nonNegative));
    case "div":
      return isFactor(b) ? signOf(a, nonNegative) : div(signOf(a, nonNegative), b);
    case "mul":
      if (isFactor(b)) return signOf(a, nonNegative);
      return isFactor(a) ? signOf(b, nonNegative) : mul(signOf(a, nonNegative), signOf(b, nonNegative));
    case "select":
      return signOf(b, nonNegative) === signOf(c, nonNegative) ? signOf(b, nonNegative) : x;
    default:
      return x;
  }
}
