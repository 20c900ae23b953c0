import { crossEntropyRows, Generator, init, manualSeed, type Tensor, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  Alphabet,
  collate,
  DataLoader,
  type DataLoaderOptions,
  parseIdx,
  randomSplit,
  Subset,
  TensorDataset,
  Windows,
} from "./index";

const count = (n: number) => new TensorDataset({ data: Int32Array.from({ length: n }, (_, i) => i), shape: [n] });
const values = ([x]: readonly [Tensor]) => [...x.dataSync()];
const endless = {
  length: 2,
  *[Symbol.iterator]() {
    while (true) yield 0;
  },
};
const later = (n: number, delay = (_: number) => 0) => ({
  length: n,
  async get(i: number) {
    for (let turn = 0; turn < delay(i); turn++) await null;
    return [Int32Array.of(i)] as const;
  },
});

describe("shares of ranks", () => {
  const shares = (n: number, size: number, options: object, how?: { even: boolean }) =>
    Array.from({ length: size }, (_, rank) => {
      const loader = new DataLoader(count(n), { batchSize: 2, ...options }).shard({ rank, size }, how);
      const batches = Array.from(loader, values);
      expect(loader.length).toBe(batches.length);
      return batches;
    });

  it.each<[string, number, number, object, { even: boolean } | undefined, number[][][]]>([
    [
      "take turns, and repeat the first samples",
      5,
      2,
      {},
      undefined,
      [
        [[0, 2], [4]],
        [[1, 3], [0]],
      ],
    ],
    ["leave samples out", 5, 2, { dropLast: true }, undefined, [[[0, 2]], [[1, 3]]]],
    ["divide the order", 5, 2, {}, { even: false }, [[[0, 1]], [[2, 3], [4]]]],
    ["may be empty", 1, 2, {}, { even: false }, [[], [[0]]]],
    ["are as many with fewer samples than ranks", 1, 3, {}, undefined, [[[0]], [[0]], [[0]]]],
    ["divide a sampler", 5, 2, { sampler: [4, 3, 0] }, undefined, [[[4, 0]], [[3, 4]]]],
  ])("%s", (_, n, size, options, how, expected) => expect(shares(n, size, options, how)).toEqual(expected));

  it("have each sample once in a shuffled epoch, and go on in its middle", () => {
    const loader = () => new DataLoader(count(9), { batchSize: 2, shuffle: true, generator: new Generator(3) });
    const [one, two] = [0, 1].map((rank) => loader().shard({ rank, size: 2 }, { even: false }));
    const all = [one!, two!].flatMap((each) => Array.from(each, values).flat());
    expect(all.sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    const expected = Array.from(two!, values);
    const [first, again] = [0, 1].map(() => loader().shard({ rank: 1, size: 2 }, { even: false }));
    for (const each of [first!, first!]) for (const batch of each) if (values(batch).length === 2) break;
    again!.loadStateDict(first!.stateDict());
    expect(Array.from(again!, values)).toEqual(expected.slice(1));
  });

  it("belong to a rank", () => {
    for (const rank of [2, -1, 0.5])
      expectCode("BAD_ARGUMENT", () => new DataLoader(count(4)).shard({ rank, size: 2 }));
  });
});

describe("batches", () => {
  it.each<[number, object, number[][]]>([
    [5, { batchSize: 2 }, [[0, 1], [2, 3], [4]]],
    [
      5,
      { batchSize: 2, dropLast: true },
      [
        [0, 1],
        [2, 3],
      ],
    ],
    [4, { batchSize: 4 }, [[0, 1, 2, 3]]],
    [2, {}, [[0], [1]]],
    [0, { batchSize: 2 }, []],
    [1, { batchSize: 2, dropLast: true }, []],
    [5, { batchSize: 2, sampler: [4, 0, 0] }, [[4, 0], [0]]],
  ])("of %i samples with %j", (n, options, expected) => {
    const loader = new DataLoader(count(n), options);
    expect(loader.length).toBe(expected.length);
    expect(Array.from(loader, values)).toEqual(expected);
  });

  it("hold each sample once when shuffled, in another order each epoch, and the same from the same seed", () => {
    fc.assert(
      fc.property(fc.nat(40), fc.integer({ min: 1, max: 9 }), fc.nat(99), (n, batchSize, seed) => {
        const epochs = () => {
          const loader = new DataLoader(count(n), { batchSize, shuffle: true, generator: new Generator(seed) });
          return [0, 1].map(() => Array.from(loader, values).flat());
        };
        const [first, second] = epochs() as [number[], number[]];
        expect([...first].sort((a, b) => a - b)).toEqual(Array.from({ length: n }, (_, i) => i));
        if (n > 12) expect(second).not.toEqual(first);
        expect(epochs()).toEqual([first, second]);
      }),
      { numRuns: 30 },
    );
  });

  it("are drawn from what manualSeed seeds", () => {
    const order = () => Array.from(new DataLoader(count(20), { shuffle: true }), values).flat();
    manualSeed(5);
    const first = order();
    manualSeed(5);
    expect(order()).toEqual(first);
  });

  it("leave the samples alone that are tensors themselves", () => {
    const samples = [tensor([1]), tensor([2])];
    for (const options of [{}, { collate: (batch: Tensor[]) => batch }, { batchSize: 2 }]) {
      const loader = new DataLoader<Tensor, Tensor | Tensor[]>(samples, options);
      expect([...loader, ...loader]).toHaveLength(2 * loader.length);
    }
    expect(samples.map(Number)).toEqual([1, 2]);
  });

  it("live until the next, and are freed when the loop ends early", async () => {
    const device = await init("js");
    const before = device.memory();
    const seen: Tensor[] = [];
    for (const [x] of new DataLoader(count(6), { batchSize: 2 })) {
      expect(seen.every((batch) => batch.isDisposed)).toBe(true);
      seen.push(x);
      if (seen.length === 2) break;
    }
    for await (const [x] of new DataLoader(later(6), { batchSize: 2, prefetch: 3 })) {
      expect(x!.isDisposed).toBe(false);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve));
    expect(device.memory()).toEqual(before);
  });
});

describe("samples that come later", () => {
  it("keep their order, however long each takes", async () => {
    const loader = new DataLoader(
      later(7, (i) => 9 - i),
      { batchSize: 2, prefetch: 2 },
    );
    const all: number[] = [];
    for await (const [x] of loader) all.push(...x!.dataSync());
    expect(all).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it.each([0, 1, 3])("are begun %i batches ahead", async (prefetch) => {
    let begun = 0;
    const get = async (i: number) => {
      begun = Math.max(begun, i + 1);
      return Int32Array.of(i);
    };
    const data = { length: 8, get };
    for await (const _ of new DataLoader(data, { prefetch })) break;
    expect(begun).toBe(1 + prefetch);
  });

  it("cannot be waited for by `for of`, which leaves none", async () => {
    const device = await init("js");
    const { tensors } = device.memory();
    expectCode("NOT_SYNC", () => [...new DataLoader(later(2))]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(device.memory().tensors).toBeLessThanOrEqual(tensors); // those of others may be collected
  });

  const gone = new Error("gone");
  const failAtTwo = (i: number) => (i === 2 ? Promise.reject(gone) : Promise.resolve(i));
  const throwAtTwo = (i: number) => {
    if (i === 2) throw gone;
    return Promise.resolve(i);
  };
  it.each<[string, ConstructorParameters<typeof DataLoader<number, unknown>>]>([
    ["samples", [{ length: 4, get: failAtTwo }]],
    ["calls for samples", [{ length: 4, get: throwAtTwo }]],
    ["batches", [{ length: 4, get: (i) => i, batch: ([i]: Int32Array) => failAtTwo(i!) }]],
    ["collations", [[0, 1, 2, 3], { collate: ([i]) => failAtTwo(i!) }]],
  ])("%s that fail end the loop at their batch, not before, and not the program", async (_, [data, options]) => {
    let seen = 0;
    const loop = async () => {
      for await (const _ of new DataLoader(data, { ...options, prefetch: 3 })) {
        seen++;
        await new Promise((resolve) => setTimeout(resolve)); // what fails meanwhile is not heard by anyone
      }
    };
    await expect(loop()).rejects.toBe(gone);
    expect(seen).toBe(2);
  });

  it("of which one is thrown for after another failed are not left unheard", async () => {
    const get = (i: number) => (i === 0 ? Promise.reject(new Error("unheard")) : throwAtTwo(i));
    const loader = new DataLoader({ length: 3, get }, { batchSize: 3 });
    await expect(loader[Symbol.asyncIterator]().next()).rejects.toBe(gone);
    expect(() => [...loader]).toThrow(gone);
    await new Promise((resolve) => setTimeout(resolve));
  });
});

describe("an epoch resumed in its middle", () => {
  const options = () => ({ batchSize: 3, shuffle: true, generator: new Generator(7) });
  /** What each step of all ranks has, for so many steps, and the state of each rank. */
  const steps = (n: number, ranks: number, batchSize: number, most: number, state?: unknown) => {
    const loaders = Array.from({ length: ranks }, (_, rank) =>
      new DataLoader(count(n), { ...options(), batchSize }).shard({ rank, size: ranks }),
    );
    for (const loader of state === undefined ? [] : loaders) loader.loadStateDict(state);
    const seen: number[][] = [];
    let saved: unknown[] = [];
    const iterators = loaders.map((loader) => loader[Symbol.iterator]());
    while (seen.length < most) {
      const batches = iterators.map((iterator) => iterator.next());
      if (batches.some(({ done }) => done)) break;
      seen.push(batches.flatMap(({ value }) => values(value)));
      saved = loaders.map((loader) => JSON.parse(JSON.stringify(loader.stateDict())));
    }
    return { seen, saved };
  };

  it("goes on on other ranks, in batches of other sizes: each sample comes once", () => {
    const size = fc.integer({ min: 1, max: 4 });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        size,
        size,
        size,
        size,
        fc.nat(4),
        (n, ranks, batch, more, other, at) => {
          const { seen, saved } = steps(n, ranks, batch, at + 1);
          for (const state of saved) expect(state).toEqual(saved[0]);
          const rest = steps(n, more, other, Number.POSITIVE_INFINITY, saved[0]).seen;
          const all = [...seen, ...rest].flat();
          // What fills the last step comes twice.
          expect(new Set(all).size).toBe(n);
          expect(all.length - n).toBeLessThan(Math.max(ranks, more));
        },
      ),
      { numRuns: 60 },
    );
  });

  it("has the steps that it would have had where all ranks together take as many samples", () => {
    const sorted = (list: number[][]) => list.map((step) => [...step].sort((a, b) => a - b));
    const whole = sorted(steps(40, 4, 5, 9).seen);
    const { seen, saved } = steps(40, 4, 5, 1);
    for (const [ranks, batch] of [
      [2, 10],
      [1, 20],
      [5, 4],
    ] as const)
      expect(sorted([...seen, ...steps(40, ranks, batch, 9, saved[0]).seen])).toEqual(whole);
  });

  it("goes on with the batch that would have come, and with the epochs after it", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.nat(30), fc.nat(3), (n, stop, used) => {
        const whole = new DataLoader(count(n), options());
        const straight = [0, 1, 2].flatMap(() => Array.from(whole, values));
        const first = new DataLoader(count(n), options());
        const seen: number[][] = [];
        let saved = JSON.stringify(first.stateDict());
        for (const batch of first) {
          seen.push(values(batch));
          saved = JSON.stringify(first.stateDict());
          if (seen.length > stop % first.length) break;
        }
        const second = new DataLoader(count(n), options());
        // It may stand in an epoch of its own.
        const other = second[Symbol.iterator]();
        for (let i = 0; i < used; i++) other.next();
        second.loadStateDict(JSON.parse(saved));
        expect(JSON.stringify(second.stateDict())).toBe(saved);
        for (let epoch = 0; epoch < 3; epoch++) seen.push(...Array.from(second, values));
        expect(seen).toEqual(straight);
      }),
      { numRuns: 40 },
    );
  });

  it.each([
    [null],
    [{ seed: 1 }],
    [{ seed: -1, taken: 0, samples: 4 }],
    [{ seed: null, taken: 1, samples: 4 }],
    [{ seed: 1, taken: 99, samples: 4 }],
    [{ seed: 1, taken: 0, samples: 4, sampler: {} }],
    [{ ...new DataLoader(count(4), options()).stateDict(), seed: 1, generator: undefined }],
    [{ ...new DataLoader(count(5), options()).stateDict(), seed: 1 }],
  ])("rejects %j", (state) => {
    const loader = new DataLoader(count(4), options());
    expectCode("BAD_STATE", () => loader.loadStateDict(state as never));
  });
});

it.each<[string, () => unknown]>([
  ["no dataset", () => new DataLoader(null as never)],
  ["a dataset without get", () => new DataLoader({ length: 3 } as never)],
  ["a dataset without a length", () => new DataLoader({ get: () => 1 } as never)],
  ["a batch of nothing", () => new DataLoader(count(2), { batchSize: 0 })],
  ["half a sample", () => new DataLoader(count(2), { batchSize: 1.5 })],
  ["PyTorch's spelling", () => new DataLoader(count(2), { batch_size: 2 } as never)],
  ["prefetch below 0", () => new DataLoader(count(2), { prefetch: -1 })],
  ["what is no generator", () => new DataLoader(count(2), { generator: {} as never })],
  ["a sampler and shuffle", () => new DataLoader(count(2), { sampler: [1], shuffle: true })],
  ["a sampler without a length", () => new DataLoader(count(2), { sampler: new Set([1]) as never })],
  ["a batch that is no function", () => new DataLoader({ length: 2, get: (i: number) => i, batch: 5 } as never)],
  [
    "a sampler of a length below 0",
    () => new DataLoader(count(2), { sampler: { length: -1, *[Symbol.iterator]() {} } }),
  ],
  [
    "a sampler that gives fewer",
    () => [...new DataLoader(count(2), { sampler: { length: 2, *[Symbol.iterator]() {} } })],
  ],
  ["a sampler that never ends", () => [...new DataLoader(count(2), { sampler: endless })]],
  ["a dataset of fewer than its length", () => [...new DataLoader({ length: 2, get: (i: number) => [7][i]! })]],
  ["a position that there is not", () => [...new DataLoader(count(2), { sampler: [2] })]],
  ["parts that are too many", () => randomSplit(count(4), [3, 2])],
  ["fractions of less than all", () => randomSplit(count(4), [0.5, 0.4])],
  ["parts of no list", () => randomSplit(count(4), 2 as never)],
  ["a subset of no list", () => new Subset(count(4), null as never)],
  ["a sampler of null", () => new DataLoader(count(4), { sampler: null as never })],
  ["invalid samples", () => collate(null as never)],
  ["an invalid text", () => new Alphabet("ab").encode(1 as never)],
  ["invalid tokens", () => new Alphabet("ab").decode(1 as never)],
  ["a file's name for its bytes", () => parseIdx("train.idx" as never)],
  ["windows without options", () => new Windows(Int32Array.of(1), undefined as never)],
  ["windows of a misspelt stride", () => new Windows(Int32Array.of(1, 2), { length: 1, strides: 2 } as never)],
  [
    "windows of bytes that have no numbers",
    () => new Windows(new DataView(new ArrayBuffer(4)) as never, { length: 1 }),
  ],
  ["windows of nothing", () => new Windows(Int32Array.of(1), { length: 0 })],
])("rejects %s", (_, make) => {
  expectCode("BAD_ARGUMENT", make);
});

it("splits into parts that have nothing in common, and loads them", () => {
  const parts = randomSplit(count(11), [0.7, 0.3], new Generator(3));
  const seen = parts.map((part) => Array.from(new DataLoader(part, { batchSize: 4 }), values).flat());
  expect(seen.map(({ length }) => length)).toEqual([8, 3]);
  expect(seen.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 11 }, (_, i) => i));
  const letters = randomSplit(["a", "b", "c"], [2, 1]);
  expect(letters.flatMap((part) => Array.from({ length: part.length }, (_, i) => part.get(i))).sort()).toEqual([
    "a",
    "b",
    "c",
  ]);
  expect(randomSplit(count(1), [0.5, 0.5]).map(({ length }) => length)).toEqual([1, 0]);
  expect(randomSplit(count(11), [4, 7]).map(({ length }) => length)).toEqual([4, 7]);
});

it("feeds a loss with labels", () => {
  const data = new TensorDataset(
    tensor([
      [2, 0],
      [0, 2],
    ]),
    { data: Uint8Array.of(0, 1), shape: [2] },
  );
  const options: DataLoaderOptions<readonly Tensor[], readonly Tensor[]> = { batchSize: 2 };
  for (const [x, y] of new DataLoader(data, options)) {
    expect(y!.dtype).toBe("u8");
    expect([...crossEntropyRows(x!, y!.to("i32")).dataSync()].every((loss) => loss < 0.2)).toBe(true);
  }
});
