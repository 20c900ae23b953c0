/** Seeded test data: ordinary values of many magnitudes, salted with the special ones where asked. */
import { byteSize, type DType, type Rule, type TypedArray, viewElements } from "@opt/core/backend";
import { narrowFloatBits } from "../reference/narrow-floats";
import { Random } from "./random";
import { SPECIALS } from "./specials";

export interface SeededOptions {
  readonly seed: number;
  /** Replaces about one element in eight by a special value. */
  readonly specials?: boolean;
  /** Ordinary values are >= 0, as those of second moments. Special values go everywhere all the same. */
  readonly nonNegative?: boolean;
}

/** The longest array that was made of each stream of numbers: a shorter one is its beginning. */
const longest = new Map<string, TypedArray>();

/** `size` stored elements of a dtype (f16 and bf16 as bit patterns). Without specials they lie in about [-8, 8]. */
export function seededArray(dtype: "f32", size: number, options: SeededOptions): Float32Array;
export function seededArray(dtype: "f64", size: number, options: SeededOptions): Float64Array;
export function seededArray(dtype: DType, size: number, options: SeededOptions): TypedArray;
export function seededArray(dtype: DType, size: number, options: SeededOptions): TypedArray {
  const { seed, specials = false, nonNegative = false } = options;
  const stream = `${dtype} ${seed} ${specials} ${nonNegative}`;
  const known = longest.get(stream);
  if (known !== undefined && known.length >= size) return known.slice(0, size);
  const array = makeArray(dtype, size, { seed, specials, nonNegative });
  longest.set(stream, array);
  return array.slice();
}

function makeArray(dtype: DType, size: number, { seed, specials, nonNegative }: Required<SeededOptions>): TypedArray {
  const random = new Random(seed);
  const array = viewElements(new ArrayBuffer(size * byteSize(dtype)), 0, size, dtype);
  const store = STORE[dtype];
  for (let i = 0; i < size; i++) {
    const special = random.below(8) === 0;
    const value = ordinary(random);
    if (special && specials) array[i] = random.pick(SPECIALS[dtype]);
    else array[i] = store(nonNegative ? Math.abs(value) : value);
  }
  return array;
}

/** Three in four are near 1 in magnitude, the others spread over 2^-10 .. 1. */
function ordinary(random: Random): number {
  const spread = random.below(4) === 0 ? 2 ** -random.below(11) : 1;
  return random.normal() * spread;
}

/** An ordinary value as a stored element, in a range that suits the dtype. */
const STORE: Readonly<Record<DType, (x: number) => number>> = {
  f32: (x) => x,
  f64: (x) => x,
  f16: (x) => narrowFloatBits(x, "f16"),
  bf16: (x) => narrowFloatBits(x, "bf16"),
  i32: (x) => Math.round(x * 1000),
  u8: (x) => Math.min(255, Math.round(Math.abs(x) * 60)),
  bool: (x) => (x > 0 ? 1 : 0),
};

export interface SeededBuffersOptions {
  readonly size: number;
  readonly seed: number;
  readonly dtype?: "f32" | "f64";
  readonly specials?: boolean;
  /** Buffers whose ordinary values are >= 0. By default those named as squares are: `expAvgSq`, `maxExpAvgSq`. */
  readonly nonNegative?: readonly string[];
}

/** Arrays for every buffer of a rule, in the order of `rule.buffers`. */
export function seededBuffers(rule: Pick<Rule, "buffers">, options: SeededBuffersOptions): TypedArray[] {
  const { size, seed, dtype = "f32", specials = false, nonNegative } = options;
  const isSquare = (name: string) => (nonNegative === undefined ? name.endsWith("Sq") : nonNegative.includes(name));
  return rule.buffers.map((name, slot) =>
    seededArray(dtype, size, { seed: seed * 64 + slot, specials, nonNegative: isSquare(name) }),
  );
}

/** A rule's scalars, in (-1, 1) and not representable in float32: a device that forgets to round them is found out. */
export function seededScalars(rule: Pick<Rule, "scalars">, seed: number): number[] {
  const random = new Random(seed);
  const drawn = rule.scalars.map(() => random.uniform() * 2 - 1);
  // What is added against a division by 0 must not bring a denominator near 0.
  return drawn.map((value, i) => (rule.scalars[i] === "eps" ? Math.abs(value) : value));
}

/** Row indices in [0, bound). */
export function seededIndices(count: number, bound: number, seed: number): Int32Array {
  const random = new Random(seed);
  return Int32Array.from({ length: count }, () => random.below(bound));
}
