/** Where elementwise ops and reductions are computed, and how integers come back from there. */
import type { Device } from "../device/device";
import { check } from "../errors/errors";
import { Expression } from "../rule/expression";
import { type Program, trace } from "../rule/program";
import { add, fma, less, mul, neg, sub, where } from "../rule/symbols";
import { computeDType, type DType, type MapDType } from "../values/dtype";
import { toStored } from "../values/half";

/** f64 for f64 and i32, which it holds; f32 for the others; integers as i32 on devices that lack f64. */
export function computeOn(device: Device, dtype: DType): MapDType {
  const compute = computeDType(dtype);
  const isInteger = dtype === "i32" || dtype === "u8";
  return isInteger && !device.backend.dtypes.includes("f64") ? "i32" : compute;
}

/** Ops that are the same modulo 2^bits: a scalar beyond the range wraps, as in PyTorch. */
const MODULAR: ReadonlySet<string> = new Set(["add", "sub", "mul", "fma"]);

/** Scalars of an op on integers of a dtype, within its range. @throws OptError BAD_ARGUMENT if they are not, as PyTorch's clamp, unless the op wraps */
export function integerScalars(name: string, dtype: "i32" | "u8", scalars: readonly number[]): readonly number[] {
  const stored = toStored(dtype);
  return scalars.map((x) => {
    if (MODULAR.has(name)) return dtype === "u8" ? x & 255 : x | 0;
    check(x === stored(x), "BAD_ARGUMENT", name, () => `${x} is beyond ${dtype}.`, 'Use x.to("f32").');
    return x;
  });
}

/** x < 2.5 is x < 3 for integers, and 2.5 < x is 2 < x; a number beyond them is larger or smaller than all, a fraction equal to none. */
export function comparedScalars(
  name: string,
  pattern: string,
  scalars: readonly number[],
): { compute: MapDType; scalars: readonly number[] } {
  const [scalar] = scalars;
  if (scalar === undefined) return { compute: "i32", scalars };
  const isEqual = name === "eq" || name === "ne";
  const isNext = (name === "less") === (pattern === "tn");
  const whole = isEqual && !Number.isInteger(scalar) ? 2 ** 32 : isNext ? Math.ceil(scalar) : Math.floor(scalar);
  if (whole === (whole | 0)) return { compute: "i32", scalars: [whole] };
  return { compute: "f32", scalars: [whole * Number.POSITIVE_INFINITY] };
}

/** Adding and subtracting it rounds float64 numbers below 2^51 to integers. */
const ROUNDING = 1.5 * 2 ** 52;
const WORD = 2 ** 32;

/** An integer in float64, modulo 2^32 from -2^31 on: what i32 arithmetic gives beyond its range. Or modulo another power of two. */
function wrapped(x: Expression, word = WORD): Expression {
  const words = sub(add(mul(x, 1 / word), ROUNDING), ROUNDING);
  const rest = fma(words, -word, x);
  return where(less(word / 2 - 1, rest), sub(rest, word), rest);
}

/** a * b modulo 2^32: the rounded product, and what rounding took from it. */
function wrappedProduct(a: Expression, b: Expression): Expression {
  const product = mul(a, b);
  return wrapped(add(wrapped(product), fma(a, b, neg(product))));
}

/** A forward expression of integers in float64, which may have left their range. */
export function integerForward(name: string, forward: Expression, [a, b, c]: readonly Expression[]): Expression {
  if (name === "mul") return wrappedProduct(a!, b!);
  return wrapped(name === "fma" ? add(wrappedProduct(a!, b!), c!) : forward);
}

/** For sums of integers in float64. */
export const WRAP = /* @__PURE__ */ traceWrap();

/** The lower 16 bits of an integer in float64, from -2^15 on. */
export const LOW = /* @__PURE__ */ traceWrap(2 ** 16);

function traceWrap(word?: number): Program {
  return trace(["a"], [], [{ slot: 0, expression: wrapped(new Expression("buffer", [], 0), word) }]);
}
