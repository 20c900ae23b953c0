/** sin and cos of float32 values held as float64, correct for arguments of any size. */
import {
  type Callable,
  type FunctionBuilder,
  f64,
  f64x2,
  i32,
  i32x4,
  i64,
  i64x2,
  type ModuleBuilder,
  select,
  type Value,
  v128,
} from "../assembler";
import { COS, HALF_PI, SIN, TWO_OVER_PI } from "./coefficients";
import { both, polynomial } from "./polynomial";

type Vector = Value<"v128">;

const ROUNDER = 1.5 * 2 ** 52;
/** Below, the multiples of the parts of pi/2 are exact. */
const LARGE = 2 ** 20;

/**
 * x - n pi/2 within pi/4 of 0, with n mod 4 in its two lowest bits, for x >= LARGE (Payne & Hanek 1983): the 96 bits of 2/pi that matter
 * at x's exponent times its 24-bit significand, modulo 4. NaN for infinity and NaN.
 */
function emitReduceLarge(module: ModuleBuilder): Callable<["f64"], "f64"> {
  /** Word `index` of 2/pi behind a word of zeros. */
  const word = module.function({ parameters: ["i32"], result: "i64" }, (_f, index) =>
    TWO_OVER_PI.reduceRight<Value<"i64">>(
      (rest, bits, i) => select(i32.eq(index, i + 1), i64.const(bits), rest),
      i64.const(0),
    ),
  );
  return module.function({ parameters: ["f64"], result: "f64" }, (f, x) => {
    f.if(i32.eqz(f64.lt(x, Number.POSITIVE_INFINITY)), () => f.return(f64.const(Number.NaN)));
    const pattern = f.local("i64", i64.reinterpretF64(x));
    const lowWord = (value: Value<"i64">) => i64.and(value, 0xffffffff);
    // x = significand * 2^exponent; the bits of 2/pi before the one of weight 2^(1 - exponent) give multiples of 4.
    const exponent = i32.sub(i32.wrapI64(i64.shrU(pattern, 52)), 1023 + 23);
    const hidden = i64.shl(i64.const(1), 23);
    const significand = f.local("i64", i64.or(i64.and(i64.shrU(pattern, 29), 0x7fffff), hidden));
    const offset = f.local("i32", i32.add(exponent, 30));
    const shift = f.local("i64", i64.extendI32U(i32.and(offset, 31)));
    const window = [0, 1, 2].map((i) => {
      const at = (next: number) => word(i32.add(i32.shrU(offset, 5), i + next));
      return i64.shrU(i64.shl(i64.or(i64.shl(at(0), 32), at(1)), shift), 32);
    }) as [Value<"i64">, Value<"i64">, Value<"i64">];
    const low = f.local("i64", i64.mul(significand, window[2]));
    const middle = f.local("i64", i64.add(i64.mul(significand, window[1]), i64.shrU(low, 32)));
    const high = i64.add(i64.mul(significand, window[0]), i64.shrU(middle, 32));
    const top = f.local("i64", i64.or(i64.shl(high, 32), lowWord(middle)));
    // Two bits of quadrant, then the fraction: as a signed number it is the distance to the nearest quadrant.
    const quadrant = i64.add(i64.shrU(top, 62), i64.and(i64.shrU(top, 61), 1));
    const fraction = i64.or(i64.shl(top, 2), i64.and(i64.shrU(low, 30), 3));
    const rest = f64.mul(f64.convertI64S(fraction), (Math.PI / 2) * 2 ** -64);
    return f64.reinterpretI64(i64.or(i64.and(i64.reinterpretF64(rest), -4), i64.and(quadrant, 3)));
  });
}

/** sin or cos of x >= 0. */
export function emitTrigonometry(module: ModuleBuilder, op: "sin" | "cos"): (f: FunctionBuilder, x: Vector) => Vector {
  const reduceLarge = emitReduceLarge(module);
  return (f, x) => {
    const [zero, one, two] = [0, 1, 2].map((n): Vector => f.constant(i32x4.const([n, 0, n, 0]))) as [
      Vector,
      Vector,
      Vector,
    ];
    const quadrant = f.local("v128", f64x2.add(f64x2.mul(x, both(f, 2 / Math.PI)), both(f, ROUNDER)));
    const n = f.local("v128", f64x2.sub(quadrant, both(f, ROUNDER)));
    const r = f.local(
      "v128",
      HALF_PI.reduce<Vector>((rest, part) => f64x2.sub(rest, f64x2.mul(n, both(f, part))), x),
    );
    const isSmall = f.local("v128", f64x2.lt(x, both(f, LARGE)));
    f.if(i32.ne(i64x2.bitmask(isSmall), 3), () => {
      const packed = f64x2.replaceLane(
        f64x2.splat(reduceLarge(f64x2.extractLane(x, 0))),
        1,
        reduceLarge(f64x2.extractLane(x, 1)),
      );
      const large = f.local("v128", packed);
      f.set(r, v128.bitselect(r, large, isSmall));
      f.set(quadrant, v128.bitselect(quadrant, large, isSmall));
    });
    if (op === "cos") f.set(quadrant, i64x2.add(quadrant, one));
    const t = f.local("v128", f64x2.mul(r, r));
    const isOdd = i64x2.sub(zero, v128.and(quadrant, one));
    const magnitude = v128.bitselect(polynomial(f, COS, [t]), f64x2.mul(r, polynomial(f, SIN, [t])), isOdd);
    return v128.xor(magnitude, i64x2.shl(v128.and(quadrant, two), 62));
  };
}
