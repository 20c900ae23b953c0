/** The positions of PyTorch's sampler, and of a run that goes on elsewhere. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DistributedSampler, type DistributedSamplerOptions } from "./distributed-sampler";

const samplers = (length: number, size: number, options: Partial<DistributedSamplerOptions> = {}) =>
  Array.from({ length: size }, (_, rank) => new DistributedSampler(length, { rank, size, ...options }));

/** What all ranks take in one step after the other, `each` samples a rank. */
function steps(ranks: readonly DistributedSampler[], each: number): number[][] {
  const orders = ranks.map((rank) => [...rank]);
  const count = Math.ceil(orders[0]!.length / each);
  return Array.from({ length: count }, (_, i) =>
    orders.flatMap((order) => order.slice(i * each, (i + 1) * each)).sort((a, b) => a - b),
  );
}

describe("without shuffling, as torch.utils.data.DistributedSampler", () => {
  it.each<[length: number, size: number, dropLast: boolean, expected: number[][]]>([
    [
      10,
      4,
      false,
      [
        [0, 4, 8],
        [1, 5, 9],
        [2, 6, 0],
        [3, 7, 1],
      ],
    ],
    [
      10,
      4,
      true,
      [
        [0, 4],
        [1, 5],
        [2, 6],
        [3, 7],
      ],
    ],
    [
      8,
      2,
      false,
      [
        [0, 2, 4, 6],
        [1, 3, 5, 7],
      ],
    ],
    [2, 5, false, [[0], [1], [0], [1], [0]]],
    [2, 5, true, [[], [], [], [], []]],
    [0, 2, false, [[], []]],
  ])("%d samples on %d ranks, dropLast %s", (length, size, dropLast, expected) => {
    const ranks = samplers(length, size, { shuffle: false, dropLast });
    expect(ranks.map((rank) => [...rank])).toEqual(expected);
    expect(ranks.map((rank) => rank.length)).toEqual(expected.map((list) => list.length));
  });
});

describe("shuffled", () => {
  it("all ranks together take each sample, in another order each epoch", () => {
    const ranks = samplers(12, 3, { seed: 4 });
    const epochs = [0, 1].map((epoch) => {
      for (const rank of ranks) rank.setEpoch(epoch);
      return ranks.flatMap((rank) => [...rank]);
    });
    for (const all of epochs) expect(new Set(all).size).toBe(12);
    expect(epochs[0]).not.toEqual(epochs[1]);
    for (const rank of ranks) rank.setEpoch(0);
    expect(ranks.flatMap((rank) => [...rank])).toEqual(epochs[0]);
  });

  it("goes on on other ranks with the samples that each step would have had", () => {
    const counts = fc.constantFrom(1, 2, 3, 4, 6, 12);
    fc.assert(
      fc.property(fc.integer({ min: 12, max: 90 }), counts, counts, fc.nat(5), (length, before, after, done) => {
        // 12 samples in each step, whoever takes them.
        const whole = steps(samplers(length - (length % 12), before, { seed: 3 }), 12 / before);
        const ranks = samplers(length - (length % 12), before, { seed: 3 });
        for (const rank of ranks) for (let i = 0; i < done; i++) rank.take(12 / before);
        const others = samplers(length - (length % 12), after, { seed: 3 });
        for (const other of others) other.loadStateDict(JSON.parse(JSON.stringify(ranks[0]!.stateDict())));
        expect(steps(others, 12 / after)).toEqual(whole.slice(done));
      }),
    );
  });

  it("the epoch after one that was resumed is whole", () => {
    const sampler = new DistributedSampler(10, { rank: 0, size: 2 });
    sampler.take(3);
    expect(sampler.length).toBe(2);
    sampler.setEpoch(0); // the same: it goes on
    expect(sampler.length).toBe(2);
    sampler.setEpoch(1);
    expect(sampler.length).toBe(5);
  });
});

describe("rejected", () => {
  const state = new DistributedSampler(5, { rank: 0, size: 1 }).stateDict();
  it.each<[string, string, () => unknown]>([
    ["an invalid rank", "BAD_ARGUMENT", () => new DistributedSampler(5, { rank: 2, size: 2 })],
    ["no ranks", "BAD_ARGUMENT", () => new DistributedSampler(5, { rank: 0, size: 0 })],
    ["half a sample", "BAD_ARGUMENT", () => new DistributedSampler(0.5, { rank: 0, size: 1 })],
    ["an unknown option", "BAD_ARGUMENT", () => new DistributedSampler(5, { rank: 0, size: 1, world: 1 } as never)],
    ["a negative epoch", "BAD_ARGUMENT", () => samplers(5, 1)[0]!.setEpoch(-1)],
    ["less than nothing", "BAD_ARGUMENT", () => samplers(5, 1)[0]!.take(-1)],
    ["another dataset's state", "BAD_STATE", () => samplers(6, 1)[0]!.loadStateDict(state)],
    ["another order's state", "BAD_STATE", () => samplers(5, 1, { seed: 1 })[0]!.loadStateDict(state)],
    ["what is no state", "BAD_STATE", () => samplers(5, 1)[0]!.loadStateDict(null as never)],
  ])("%s", (_, code, call) => expect(call).toThrow(expect.objectContaining({ code })));
});
