// Shares of ranks, parts of a split and batches have each sample once, whatever the numbers are.
import { Generator } from "@opt/core";
import fc from "fast-check";
import { expect, it } from "vitest";
import { DataLoader, randomSplit, Windows } from "./index";

const samples = (n: number) => Array.from({ length: n }, (_, i) => i);
const loaderOf = (n: number, batchSize: number, seed: number | null, dropLast = false) =>
  new DataLoader<number, number[]>(samples(n), {
    ...{ batchSize, dropLast, collate: (list: number[]) => list },
    ...(seed !== null && { shuffle: true, generator: new Generator(seed) }),
  });
const sorted = (list: readonly number[]) => [...list].sort((a, b) => a - b);

const extents = [
  fc.nat(30),
  fc.integer({ min: 1, max: 7 }),
  fc.option(fc.nat(9)),
  fc.integer({ min: 1, max: 5 }),
] as const;

it("uneven shares have each sample once", () => {
  fc.assert(
    fc.property(...extents, (n, batchSize, seed, size) => {
      const shares = samples(size).map((rank) => loaderOf(n, batchSize, seed).shard({ rank, size }, { even: false }));
      expect(sorted(shares.flatMap((share) => [...share].flat()))).toEqual(samples(n));
    }),
  );
});

it("even shares have as many samples and batches each, and all samples at least once", () => {
  fc.assert(
    fc.property(...extents, (n, batchSize, seed, size) => {
      const shares = samples(size).map((rank) => loaderOf(n, batchSize, seed).shard({ rank, size }));
      const epochs = shares.map((share) => [...share]);
      expect(new Set(epochs.map((batches) => batches.flat().length)).size).toBe(1);
      expect(epochs.map((batches) => batches.length)).toEqual(shares.map((share) => share.length));
      expect(sorted([...new Set(epochs.flat(2))])).toEqual(samples(n));
    }),
  );
});

it("even shares have every size-th sample from their rank on, in the order of the epoch, over and over", () => {
  fc.assert(
    fc.property(...extents, (n, batchSize, seed, size) => {
      const [order] = [[...loaderOf(n, batchSize, seed)].flat()];
      const count = Math.ceil(n / size);
      for (const rank of samples(size)) {
        const share = [...loaderOf(n, batchSize, seed).shard({ rank, size })].flat();
        expect(share).toEqual(samples(count).map((i) => order[(rank + i * size) % n]));
      }
    }),
  );
});

it("with dropLast no share has a sample of another one, and no batch is short", () => {
  fc.assert(
    fc.property(...extents, (n, batchSize, seed, size) => {
      const shares = samples(size).map((rank) => loaderOf(n, batchSize, seed, true).shard({ rank, size }));
      const batches = shares.flatMap((share) => [...share]);
      expect(batches.every((batch) => batch.length === batchSize)).toBe(true);
      const all = batches.flat();
      expect(new Set(all).size).toBe(all.length);
    }),
  );
});

it("a share that is saved in its middle goes on with the samples that it has left", () => {
  fc.assert(
    fc.property(...extents, fc.nat(9), (n, batchSize, seed, size, stop) => {
      const share = () => loaderOf(n, batchSize, seed).shard({ rank: size - 1, size });
      const [whole, cut, resumed] = [share(), share(), share()];
      const expected = [[...whole], [...whole]].flat(2);
      const before: number[] = [];
      let served = 0;
      if (stop > 0) {
        for (const batch of cut) {
          before.push(...batch);
          if (++served === stop) break;
        }
      }
      resumed.loadStateDict(JSON.parse(JSON.stringify(cut.stateDict())));
      const isWhole = served < stop || served === cut.length;
      const rest = isWhole && served > 0 ? [...resumed] : [...resumed, ...resumed];
      expect([...before, ...rest.flat()].slice(0, expected.length)).toEqual(
        expected.slice(0, before.length + rest.flat().length),
      );
    }),
  );
});

it("parts of a split have each sample once, in the lengths that were asked for", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { minLength: 1, maxLength: 5 }), fc.nat(9), (lengths, seed) => {
      const n = lengths.reduce((a, b) => a + b, 0);
      if (n === 1) return; // [1] is a fraction, too, and [0, 1] both
      const parts = randomSplit(samples(n), lengths, new Generator(seed));
      expect(parts.map(({ length }) => length)).toEqual(lengths);
      expect(sorted(parts.flatMap((part) => [...part.indices]))).toEqual(samples(n));
    }),
  );
});

it("fractions of a split differ from their shares by less than one sample, however they are rounded", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 9 }), fc.nat(40), (parts, n) => {
      const sum = parts.reduce((a, b) => a + b, 0);
      const fractions = parts.map((part) => part / sum);
      const split = randomSplit(samples(n), fractions, new Generator(1));
      expect(sorted(split.flatMap((part) => [...part.indices]))).toEqual(samples(n));
      for (const [i, { length }] of split.entries())
        expect(Math.abs(length - fractions[i]! * n)).toBeLessThan(1 + 1e-9);
    }),
  );
});

it("windows with a stride of their length have each token once, and labels follow by one", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 40 }), fc.integer({ min: 1, max: 9 }), (count, length) => {
      fc.pre(count > length);
      const windows = new Windows(Int32Array.from(samples(count)), { length, stride: length });
      const pairs = samples(windows.length).map((i) => windows.get(i).map((each) => [...each.dataSync()]));
      const tokens = pairs.flatMap(([x]) => x!);
      expect(tokens).toEqual(samples(tokens.length));
      expect(count - 1 - tokens.length).toBeLessThan(length);
      for (const [x, y] of pairs) expect(y).toEqual(x!.map((token) => token + 1));
    }),
  );
});
