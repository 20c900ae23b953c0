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

interface Stream {
  readonly random: Random;
  values: Float64Array;
  /** Where in the list of special values an element is, in (0, 1); 0 of ordinary ones. */
  picked: Float64Array;
}

/** As far as they were asked for: a shorter array is the beginning of a longer one, and those of all dtypes are of the same numbers. */
const streams = new Map<string, Stream>();

/** `size` stored elements of a dtype (f16 and bf16 as bit patterns). Without specials they lie in about [-8, 8]. */
export function seededArray(dtype: "f32", size: number, options: SeededOptions): Float32Array;
export function seededArray(dtype: "f64", size: number, options: SeededOptions): Float64Array;
export function seededArray(dtype: DType, size: number, options: SeededOptions): TypedArray;
export function seededArray(dtype: DType, size: number, options: SeededOptions): TypedArray {
  const { seed, specials = false, nonNegative = false } = options;
  const { values, picked } = streamOf(seed, specials, size);
  const store = STORE[dtype];
  const special = SPECIALS[dtype];
  const stored = new Float64Array(size);
  for (let i = 0; i < size; i++) {
    const place = picked[i]!;
    stored[i] =
      place > 0 ? special[Math.floor(place * special.length)]! : store(nonNegative ? Math.abs(values[i]!) : values[i]!);
  }
  const array = viewElements(new ArrayBuffer(size * byteSize(dtype)), 0, size, dtype);
  array.set(stored);
  return array;
}

function streamOf(seed: number, specials: boolean, size: number): Stream {
  const key = `${seed} ${specials}`;
  const empty = new Float64Array(0);
  const stream = streams.get(key) ?? { random: new Random(seed), values: empty, picked: empty };
  streams.set(key, stream);
  const begun = stream.values.length;
  if (begun >= size) return stream;
  const [values, picked] = [new Float64Array(size), new Float64Array(size)];
  values.set(stream.values);
  picked.set(stream.picked);
  for (let i = begun; i < size; i++) {
    const isSpecial = stream.random.below(8) === 0;
    values[i] = ordinary(stream.random);
    if (isSpecial && specials) picked[i] = stream.random.word() / 2 ** 32;
  }
  return Object.assign(stream, { values, picked });
}

/** Three in four are near 1 in magnitude, the others spread over 2^-10 .. 1. */
function ordinary(random: Random): number {
  const spread = random.below(4) === 0 ? 1 / (1 << random.below(11)) : 1;
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
