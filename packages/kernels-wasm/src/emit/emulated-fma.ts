/** Fused multiply-add out of separate operations, to the same bits: for engines whose own is not fused. */
import {
  type FunctionBuilder,
  f32x4,
  f64x2,
  i32,
  i32x4,
  i64x2,
  type ModuleBuilder,
  shuffle32,
  type Value,
  v128,
} from "../assembler";

type Vector = Value<"v128">;
export type Fma = (a: Vector, b: Vector, c: Vector) => Vector;

/**
 * Through float64, where the product is exact. Rounding the sum twice errs only where it lies midway between two floats and was inexact;
 * such sums are looked for, and rounded to odd instead. Midway is 1 and 28 zeros beyond a float's bits, or anything below its range.
 */
export function emulate32(module: ModuleBuilder): (f: FunctionBuilder) => Fma {
  const roundToOdd = emitRoundToOdd(module);
  const demote = (low: Vector, high: Vector) =>
    shuffle32(f32x4.demoteF64x2Zero(low), f32x4.demoteF64x2Zero(high), [0, 1, 4, 5]);
  const correct = module.function(
    { parameters: ["v128", "v128", "v128", "v128"], result: "v128" },
    (_f, lowProduct, highProduct, lowAddend, highAddend) =>
      demote(roundToOdd(lowProduct, lowAddend), roundToOdd(highProduct, highAddend)),
  );
  return (f) => {
    const everyLane = (word: number) => f.constant(i32x4.const([word, word, word, word]));
    const beyond = everyLane(0x1fffffff);
    const midway = everyLane(0x10000000);
    const magnitude = everyLane(0x7fffffff);
    const smallestNormal = everyLane(0x00800000);
    const upper = (x: Vector) => f64x2.promoteLowF32x4(shuffle32(x, x, [2, 3, 2, 3]));
    return (...operands) => {
      const [a, b, c] = operands.map((operand): Vector => f.local("v128", operand)) as [Vector, Vector, Vector];
      const lowProduct = f.local("v128", f64x2.mul(f64x2.promoteLowF32x4(a), f64x2.promoteLowF32x4(b)));
      const highProduct = f.local("v128", f64x2.mul(upper(a), upper(b)));
      const lowAddend = f.local("v128", f64x2.promoteLowF32x4(c));
      const highAddend = f.local("v128", upper(c));
      const low = f.local("v128", f64x2.add(lowProduct, lowAddend));
      const high = f.local("v128", f64x2.add(highProduct, highAddend));
      const result = f.local("v128", demote(low, high));
      const isMidway = i32x4.eq(v128.and(shuffle32(low, high, [0, 2, 4, 6]), beyond), midway);
      const isTiny = i32x4.ltS(v128.and(result, magnitude), smallestNormal);
      f.if(v128.anyTrue(v128.or(isMidway, isTiny)), () =>
        f.set(result, correct(lowProduct, highProduct, lowAddend, highAddend)),
      );
      return result;
    };
  };
}

/** Boldo & Melquiond 2008 on Dekker's product, as core's `fma64`, which takes over for exponents near the limits. */
export function emulate64(module: ModuleBuilder): Fma {
  const slow = module.import("fma64", { parameters: ["f64", "f64", "f64"], result: "f64" });
  const roundToOdd = emitRoundToOdd(module);
  const splitter = f64x2.const([2 ** 27 + 1, 2 ** 27 + 1]);
  return module.function({ parameters: ["v128", "v128", "v128"], result: "v128" }, (f, a, b, c) => {
    const inSafeRange = (x: Vector) => {
      const magnitude = f64x2.abs(x);
      const bounds = [2 ** -900, 2 ** 900].map((bound) => f64x2.const([bound, bound]));
      return v128.and(f64x2.gt(magnitude, bounds[0]!), f64x2.lt(magnitude, bounds[1]!));
    };
    const product = f.local("v128", f64x2.mul(a, b));
    const safe = [a, b, c, product].map(inSafeRange).reduce(v128.and);
    f.if(i32.ne(i64x2.bitmask(safe), 3), () => {
      const lane = (index: number) =>
        slow(f64x2.extractLane(a, index), f64x2.extractLane(b, index), f64x2.extractLane(c, index));
      f.return(f64x2.replaceLane(f64x2.splat(lane(0)), 1, lane(1)));
    });
    const split = (x: Vector) => {
      const scaled = f.local("v128", f64x2.mul(splitter, x));
      const high = f.local("v128", f64x2.sub(scaled, f64x2.sub(scaled, x)));
      return [high, f.local("v128", f64x2.sub(x, high))] as const;
    };
    const [highA, lowA] = split(a);
    const [highB, lowB] = split(b);
    const rest = f64x2.sub(f64x2.sub(product, f64x2.mul(highA, highB)), f64x2.mul(lowA, highB));
    const tail = f.local("v128", f64x2.sub(f64x2.mul(lowA, lowB), f64x2.sub(rest, f64x2.mul(highA, lowB))));
    const low = f.local("v128", f64x2.add(c, tail));
    const lowError = f.local("v128", errorOfSum(c, tail, low));
    const high = f.local("v128", f64x2.add(product, low));
    const highError = f.local("v128", errorOfSum(product, low, high));
    return f64x2.add(high, roundToOdd(lowError, highError));
  });
}

/** a + b in float64; where inexact, of the two neighbours the one whose last bit is 1. NaN and infinity stay. */
function emitRoundToOdd(module: ModuleBuilder) {
  return module.function({ parameters: ["v128", "v128"], result: "v128" }, (f, a, b) => {
    const sum = f.local("v128", f64x2.add(a, b));
    const error = f.local("v128", errorOfSum(a, b, sum));
    const inexact = v128.or(f64x2.lt(error, zero()), f64x2.gt(error, zero()));
    const even = i64x2.eq(v128.and(sum, i32x4.const([1, 0, 1, 0])), zero());
    // The error's sign against the sum's: -1 towards zero, 1 away from it.
    const direction = v128.or(i64x2.shrS(v128.xor(error, sum), 63), i32x4.const([1, 0, 1, 0]));
    return i64x2.add(sum, v128.and(direction, v128.and(inexact, even)));
  });
}

/** The exact value of (a + b) - sum (Knuth's two-sum). The operands are read several times: locals. */
function errorOfSum(a: Vector, b: Vector, sum: Vector): Vector {
  const shadow = f64x2.sub(sum, a);
  return f64x2.add(f64x2.sub(a, f64x2.sub(sum, shadow)), f64x2.sub(b, shadow));
}

const zero = () => i32x4.const([0, 0, 0, 0]);
