/** Square roots divided by a scalar, as a device computes them and as they are rounded: what core's rule/root-division.ts promises. */
import type { Backend, Rule, Slice } from "@opt/core/backend";
import { Random } from "./random";
import { SPECIALS } from "./specials";

const floatOf = (word: number) => new Float32Array(Uint32Array.of(word).buffer)[0]!;

/** Within reach: 1 and its neighbours, powers of 2, the reach's ends, Adam's corrections, and some at random. */
export function divisors(): number[] {
  const random = new Random(14);
  const corrections = [0.9, 0.95, 0.99, 0.999].flatMap((beta2) =>
    [1, 2, 100].map((step) => Math.fround(Math.sqrt(1 - beta2 ** step))),
  );
  const drawn = Array.from({ length: 10 }, () => floatOf(0x2b800001 + random.below(0x40000000 - 0x2b800001)));
  const nearPowers = [1, 0.5, 2 ** -17, 2 ** -39].flatMap((power) =>
    [-2, -1, 0, 1, 2].map((last) => power * (1 + last * (last < 0 ? 2 ** -24 : 2 ** -23))),
  );
  return [...nearPowers, floatOf(0x2b800001), 2 - 2 ** -23, Math.SQRT2, ...corrections, ...drawn].map(Math.fround);
}

/** Out of reach, the edges first. */
export const FAR_DIVISORS = [2 ** -40, 2, 3, 2 ** 127, 2 ** -41, 2 ** -149, 0, -0, -0.75, -1, Infinity, -Infinity, NaN];

/** Numbers whose roots are all 2^23 floats of [1, 2): rounding a square halves its error, so that the root rounds back. */
export function squaresOfAllMantissas(): Float32Array {
  return new Float32Array(2 ** 23).map((_, i) => (1 + i * 2 ** -23) ** 2);
}

/** Special values, the least and largest numbers, and any words. */
export function squaresOfAllKinds(): Float32Array {
  const random = new Random(15);
  const ends = [1, 0x007fff00, 0x7f7fff00].flatMap((word) => Array.from({ length: 512 }, (_, i) => floatOf(word + i)));
  const words = Array.from({ length: 2 ** 16 }, () => floatOf(random.word()));
  return Float32Array.from([...SPECIALS.f32, ...ends, ...words]);
}

/** The first wrong quotient of each divisor, as text. `rule` writes sqrt(x) / divisor of its buffers `quotient` and `x`. */
export function wrongQuotients(backend: Backend, rule: Rule, squares: Float32Array, by: readonly number[]): string[] {
  const { length, byteLength } = squares;
  const kernel = backend.kernel({ kind: "rule", rule, dtype: "f32" });
  const [quotient, x] = [0, 1].map((): Slice => ({ memory: backend.allocate(byteLength), byteOffset: 0, length }));
  backend.write(x!.memory, 0, new Uint8Array(squares.buffer));
  const roots = squares.map(Math.sqrt);
  const wrong = by.flatMap((divisor) => {
    backend.launch({ kind: "rule", kernel, tensors: [[quotient!, x!]], scalars: [divisor] });
    const actual = new Float32Array(backend.readSync!(quotient!.memory, 0, byteLength).buffer);
    for (let i = 0; i < length; i++) {
      const expected = Math.fround(roots[i]! / divisor);
      if (!Object.is(actual[i], expected)) return [`${roots[i]} / ${divisor}: ${actual[i]}, not ${expected}`];
    }
    return [];
  });
  for (const { memory } of [quotient!, x!]) backend.free(memory);
  return wrong;
}
