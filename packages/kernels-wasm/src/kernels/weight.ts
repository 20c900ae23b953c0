/** What a number counts for in a sum that the largest of them leads: its exponential. */
import { f32x4, i32x4, type Value, v128 } from "../assembler";
import { EXPM1 } from "../emit/coefficients";
import { emitFunction } from "../emit/functions";
import type { Target } from "../kernel";
import { multiplyAdd } from "./float";
import type { Row } from "./row";

type Vector = Value<"v128">;

/** Below, float32 has only subnormals soon: weights are 0. */
const LEAST = -87;
/** Added to a small float, it leaves the nearest integer in the lowest bits, and there 127: the exponent of 2 to that power. */
const ROUNDER = 1.5 * 2 ** 23 + 127;
/** ln(2) in two parts, of which the first has so few bits that its products with exponents are exact. */
const LN2 = [0x162e / 0x2000, Math.LN2 - 0x162e / 0x2000] as const;

/**
 * exp(x) of x up to 80, in the row's own type. In float32 with a relative error below 2e-7, 0 of x below -87, NaN of NaN; in
 * float64 JavaScript's.
 */
export function emitWeight({ module, f, float }: Row, target: Target): (x: Vector) => Vector {
  if (float.type === "f64") return emitFunction(module, "exp", "f64")(f);
  const madd = multiplyAdd(float, target);
  const all = (value: number) => f.constant(f32x4.const([value, value, value, value]));
  return (operand) => {
    const x = f.local("v128", operand);
    const shifted = f.local("v128", madd(x, all(Math.LOG2E), all(ROUNDER)));
    const n = f.local("v128", f32x4.sub(shifted, all(ROUNDER)));
    const r = f.local(
      "v128",
      LN2.reduce((rest, part) => madd(n, all(-part), rest), x as Vector),
    );
    const power = [1, ...EXPM1].map<Vector>(all).reduceRight((sum, c) => madd(sum, r, c));
    // Whatever comes of smaller numbers.
    return v128.andnot(f32x4.mul(power, i32x4.shl(shifted, 23)), f32x4.lt(x, all(LEAST)));
  };
}
