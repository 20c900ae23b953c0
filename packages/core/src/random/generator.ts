/** Seeded random numbers: the same stream on every device, because it is drawn on the host from a counter. */

import { runsOnce } from "../device/host-code";
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { inspectSymbol } from "../host/inspect-symbol";
import { shared } from "../host/shared";
import { type DType, significantBits } from "../values/dtype";

/**
 * Philox 4x32-10 (Salmon et al. 2011): four 32-bit words from a 128-bit counter and a 64-bit key.
 *
 * @example
 * const generator = new Generator(42);
 * const noise = randn([2, 3], { generator });
 */
export class Generator {
  #key: readonly [number, number];
  #counter = 0; // blocks drawn; exact up to 2^53
  readonly #block = new Uint32Array(4);
  #used = 4;

  /** @param seed an integer from 0 to 2^53 - 1 */
  constructor(seed = 0) {
    runsOnce("Generator", "make a generator", "Make it outside.");
    this.#key = keyOf(seed);
  }

  /** Restarts the stream. @throws OptError BAD_ARGUMENT; UNSUPPORTED in a compiled function */
  manualSeed(seed: number): this {
    runsOnce("Generator", "seed a generator");
    this.#key = keyOf(seed);
    this.#counter = 0;
    this.#used = 4;
    return this;
  }

  /** 32 random bits. */
  nextUint32(): number {
    if (this.#used === 4) {
      philox(wordsOf(this.#counter++), this.#key, this.#block);
      this.#used = 0;
    }
    return this.#block[this.#used++]!;
  }

  /** Uniform in [0, 1) and exact in the dtype: a multiple of 2^-24, in f16 of 2^-11 and in bf16 of 2^-8. */
  nextFloat(dtype: DType = "f32"): number {
    const bits = Math.min(significantBits(dtype) ?? 24, 24);
    return (this.nextUint32() >>> (32 - bits)) * 2 ** -bits;
  }

  /** Two independent standard normal numbers. */
  nextNormals(): [number, number] {
    return boxMuller(this.nextFloat(), this.nextFloat());
  }

  /** A random order of 0 ... n - 1 (Fisher & Yates). @throws OptError BAD_ARGUMENT */
  permutation(n: number): Int32Array {
    const isCount = Number.isInteger(n) && n >= 0 && n < 2 ** 31;
    const where = "Generator";
    check(
      isCount,
      "BAD_ARGUMENT",
      where,
      () => `permutation needs an integer from 0 to 2^31 - 1, got ${show(n)}.`,
      "Round it.",
    );
    const order = Int32Array.from({ length: n }, (_, i) => i);
    for (let i = n - 1; i > 0; i--) {
      const j = Math.floor((this.nextUint32() / 2 ** 32) * (i + 1));
      [order[i], order[j]] = [order[j]!, order[i]!];
    }
    return order;
  }

  /** @internal For console.log in Node. */
  [inspectSymbol](): string {
    return `Generator(key=[${this.#key.join(", ")}], counter=${this.#counter})`;
  }

  /** Plain JSON from which `loadStateDict` continues the stream. */
  stateDict(): { key: [number, number]; counter: number; used: number } {
    return { key: [...this.#key], counter: this.#counter, used: this.#used };
  }

  /** @throws OptError BAD_STATE; UNSUPPORTED in a compiled function */
  loadStateDict(state: unknown): void {
    runsOnce("Generator", "load a state");
    const { key, counter, used } = (state ?? {}) as ReturnType<Generator["stateDict"]>;
    const isWord = (x: unknown) => Number.isInteger(x) && (x as number) >= 0 && (x as number) < 2 ** 32;
    const valid =
      Array.isArray(key) &&
      key.length === 2 &&
      key.every(isWord) &&
      Number.isSafeInteger(counter) &&
      counter >= 0 &&
      Number.isInteger(used) &&
      used >= 0 &&
      used <= 4;
    check(
      valid && !(used < 4 && counter === 0),
      "BAD_STATE",
      "Generator",
      () => `state must be { key, counter, used }, got ${show(state)}.`,
      "Pass what stateDict() returned.",
    );
    this.#key = [key[0], key[1]];
    this.#counter = counter;
    this.#used = used;
    if (used < 4) philox(wordsOf(counter - 1), this.#key, this.#block);
  }
}

/** Uniform in [0, 1), a multiple of 2^-24, from 32 random bits. */
export const uniformOf = (word: number): number => (word >>> 8) * 2 ** -24;

/** Two independent standard normal numbers from two uniform ones in [0, 1) (Box & Muller 1958). */
export function boxMuller(first: number, second: number): [number, number] {
  const radius = Math.sqrt(-2 * Math.log(1 - first));
  const angle = 2 * Math.PI * second;
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
}

/** The key of a seed. @throws OptError BAD_ARGUMENT */
export function keyOf(seed: number): [number, number] {
  checkValue(
    Number.isSafeInteger(seed) && seed >= 0,
    "Generator",
    "the seed",
    "an integer from 0 to 2^53 - 1",
    seed,
    "For example 42.",
  );
  return [seed >>> 0, Math.floor(seed / 2 ** 32)];
}

type Counter = readonly [number, number, number, number];

function wordsOf(counter: number): Counter {
  return [counter >>> 0, Math.floor(counter / 2 ** 32), 0, 0];
}

/** The ten rounds. `block` receives the words. */
export function philox(counter: Counter, [key0, key1]: readonly [number, number], block: Uint32Array): void {
  let [c0, c1, c2, c3] = counter;
  let k0 = key0;
  let k1 = key1;
  for (let round = 0; round < 10; round++) {
    const high0 = multiplyHigh(0xd2511f53, c0);
    const low0 = Math.imul(0xd2511f53, c0);
    const high1 = multiplyHigh(0xcd9e8d57, c2);
    const low1 = Math.imul(0xcd9e8d57, c2);
    [c0, c1, c2, c3] = [(high1 ^ c1 ^ k0) >>> 0, low1 >>> 0, (high0 ^ c3 ^ k1) >>> 0, low0 >>> 0];
    k0 = (k0 + 0x9e3779b9) >>> 0;
    k1 = (k1 + 0xbb67ae85) >>> 0;
  }
  block.set([c0, c1, c2, c3]);
}

/** The upper 32 bits of a 64-bit product, from 16-bit halves. */
function multiplyHigh(a: number, b: number): number {
  const aHigh = a >>> 16;
  const aLow = a & 0xffff;
  const bHigh = b >>> 16;
  const bLow = b & 0xffff;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const middle2 = aLow * bHigh + (middle % 65536);
  return (aHigh * bHigh + Math.floor(middle / 65536) + Math.floor(middle2 / 65536)) >>> 0;
}

/** Checks that a value is a Generator, of any copy of core. @throws OptError BAD_ARGUMENT */
export function checkGenerator(where: string, generator: unknown): asserts generator is Generator {
  const draws = typeof (generator as Generator | null | undefined)?.nextNormals === "function";
  checkValue(draws, where, "generator", "a Generator", generator, "For example new Generator(42).");
}

/** The generator of calls that name none. */
export const defaultGenerator = /* @__PURE__ */ shared("generator", () => new Generator(0));

/** Seeds the default generator. @throws OptError BAD_ARGUMENT */
export function manualSeed(seed: number): Generator {
  return defaultGenerator.manualSeed(seed);
}
