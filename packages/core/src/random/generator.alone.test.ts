import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultGenerator, Generator, manualSeed, philox } from "./generator";

/** Known answers of Philox 4x32-10, of its authors' library Random123. */
it.each([
  ["zeros", [0, 0, 0, 0], [0, 0], "6627e8d5 e169c58d bc57ac4c 9b00dbd8"],
  [
    "ones",
    [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
    [0xffffffff, 0xffffffff],
    "408f276d 41c83b0e a20bc7c6 6d5451fd",
  ],
  [
    "digits of pi",
    [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    [0xa4093822, 0x299f31d0],
    "d16cfe09 94fdcceb 5001e420 24126ea1",
  ],
] as const)("philox of %s", (_, counter, key, expected) => {
  const block = new Uint32Array(4);
  philox(counter, key, block);
  expect([...block].map((word) => word.toString(16).padStart(8, "0")).join(" ")).toBe(expected);
});

describe("a generator", () => {
  it("gives one stream a seed, and others for other seeds, beyond 32 bits too", () => {
    const words = (seed: number) =>
      Array.from(
        { length: 9 },
        (
          (generator) => () =>
            generator.nextUint32()
        )(new Generator(seed)),
      );
    expect(words(7)).toEqual(words(7));
    const streams = [0, 1, 2 ** 32, 2 ** 53 - 1].map((seed) => words(seed).join());
    expect(new Set(streams).size).toBe(4);
  });

  // What a seed gives is a promise: experiments are repeated by it, with later versions and on other machines.
  it.each([
    [0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8 f8e4cca4 5cb200db"],
    [1, "e3e80670 e50a0ebc 95f222c0 b615aa27 ac08141b dfc5ccbe"],
    [42, "9ceaf053 77f5493b 12bf50ad 5742b3d7 fcdb2127 53ba6cfd"],
    [2 ** 32, "fdde3e0b fa7e58b6 3380ec46 d8d55c4f ccf3076a 6306f434"],
    [2 ** 53 - 1, "52a9a061 90bc1c93 d3ed3372 a73237a9 35edca06 57360202"],
  ])("gives the seed %d its words for good", (seed, expected) => {
    const generator = new Generator(seed);
    const words = Array.from({ length: 6 }, () => generator.nextUint32().toString(16).padStart(8, "0"));
    expect(words.join(" ")).toBe(expected);
  });

  it("makes numbers that a dtype holds, of the first bits of a word", () => {
    const first = (dtype?: "bf16" | "f16" | "f64") => new Generator(42).nextFloat(dtype);
    expect([first("bf16"), first("f16"), first("f64"), first()]).toEqual([
      0x9c / 2 ** 8,
      0x4e7 / 2 ** 11,
      0x9ceaf0 / 2 ** 24,
      0x9ceaf0 / 2 ** 24,
    ]);
  });

  it("makes numbers and orders of the words for good", () => {
    const generator = new Generator(42);
    expect(generator.nextFloat()).toBe(0x9ceaf0 / 2 ** 24);
    const [one, two] = generator.nextNormals();
    expect([one, two]).toAgreeWith([1.0075188562471753, 0.49933501165491884], { absolute: 0, relative: 1e-15 });
    expect([...generator.permutation(8)]).toEqual([0, 3, 4, 5, 7, 1, 6, 2]);
  });

  it.each([0, 1, 2, 3, 4, 5, 11])("continues from its state after %d words", (drawn) => {
    const generator = new Generator(5);
    for (let i = 0; i < drawn; i++) generator.nextUint32();
    const resumed = new Generator();
    resumed.loadStateDict(JSON.parse(JSON.stringify(generator.stateDict())));
    const next = (from: Generator) => [...from.permutation(5), ...from.nextNormals(), from.nextFloat()];
    expect(next(resumed)).toEqual(next(generator));
  });

  it("goes on with other words at every count of blocks, also beyond 2^32", () => {
    const words = (counter: number) => {
      const generator = new Generator();
      generator.loadStateDict({ key: [5, 6], counter, used: 4 });
      return Uint32Array.from({ length: 8 }, () => generator.nextUint32());
    };
    const near = fc.tuple(fc.nat(2 ** 20), fc.integer({ min: -2, max: 2 })).map(([n, by]) => n * 2 ** 32 + by);
    fc.assert(
      fc.property(fc.oneof(fc.maxSafeNat(), near.map(Math.abs)), (counter) => {
        const block = new Uint32Array(8);
        for (const [i, at] of [counter, counter + 1].entries())
          philox([at >>> 0, Math.floor(at / 2 ** 32), 0, 0], [5, 6], block.subarray(4 * i, 4 * i + 4));
        expect(words(counter)).toEqual(block);
      }),
      { seed: 48 },
    );
  });

  it("draws uniform and normal numbers with the moments they should have", () => {
    const generator = new Generator(1);
    const moments = (draw: () => number) => {
      const n = 100_000;
      const sums = [0, 0, 0, 0];
      for (let i = 0; i < n; i++) {
        const x = draw();
        for (let p = 0; p < 4; p++) sums[p]! += x ** (p + 1) / n;
      }
      return sums;
    };
    expect(moments(() => generator.nextFloat())).toAgreeWith([1 / 2, 1 / 3, 1 / 4, 1 / 5], {
      absolute: 0.005,
      relative: 0,
    });
    expect(moments(() => generator.nextNormals()[0])).toAgreeWith([0, 1, 0, 3], { absolute: 0.06, relative: 0 });
    expect(moments(() => generator.nextNormals()[1])).toAgreeWith([0, 1, 0, 3], { absolute: 0.06, relative: 0 });
  });

  it("permutes: every number once, every place as likely", () => {
    const generator = new Generator(2);
    expect([...generator.permutation(0)]).toEqual([]);
    expect([...generator.permutation(100)].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    const firsts = new Float64Array(4);
    for (let i = 0; i < 8000; i++) firsts[generator.permutation(4)[0]!]! += 1 / 8000;
    expect(firsts).toAgreeWith([0.25, 0.25, 0.25, 0.25], { absolute: 0.02, relative: 0 });
  });

  it("manualSeed restarts the stream", () => {
    const first = manualSeed(3).nextUint32();
    expect([manualSeed(3).nextUint32(), new Generator(3).nextUint32(), manualSeed(3)]).toEqual([
      first,
      first,
      defaultGenerator,
    ]);
  });

  it.each([-1, 0.5, 2 ** 53, Number.NaN, "1"])("rejects the seed %s", (seed) => {
    expectCode("BAD_ARGUMENT", () => new Generator(seed as number));
    expectCode("BAD_ARGUMENT", () => manualSeed(seed as number));
  });

  it.each([-1, 1.5, Number.NaN])("will not permute %s", (n) =>
    expectCode("BAD_ARGUMENT", () => new Generator().permutation(n)),
  );

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["no key", { counter: 0, used: 4 }],
    ["a long key", { key: [1, 2, 3], counter: 0, used: 4 }],
    ["a negative counter", { key: [1, 2], counter: -1, used: 4 }],
    ["five used words", { key: [1, 2], counter: 1, used: 5 }],
    ["words of no block", { key: [1, 2], counter: 0, used: 2 }],
  ])("rejects a state with %s and keeps its own", (_, state) => {
    const generator = new Generator(9);
    expectCode("BAD_STATE", () => generator.loadStateDict(state as never));
    expect(generator.stateDict()).toEqual(new Generator(9).stateDict());
  });
});
