/** The tutorial's numbers: 64 ranks save their slices, 56 go on from them, and one has them merged. Every bit of weights and state. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Layout,
  loadCheckpoint,
  localCommunicators,
  mergeCheckpoint,
  optimizerContents,
  optimizerState,
  saveCheckpoint,
} from "@opt/checkpoint";
import { boxesOfRank } from "@opt/checkpoint/plan";
import { Generator, parameter, randn, type Tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { expect, it } from "vitest";

/** Neither 64 nor 56 divides any of these. */
const SHAPES: Record<string, number[]> = {
  "up.weight": [131, 17],
  "up.bias": [131],
  "down.weight": [9, 70],
  "table.weight": [100, 6],
  "norm.weight": [17],
};

const layoutOf = (ranks: number): Layout => ({
  mesh: { shape: [ranks], axes: ["model"] },
  tensors: {
    "up.weight": ["model"],
    "up.bias": ["model"],
    "down.weight": [null, "model"],
    "table.weight": ["model"],
    "*": "replicate",
  },
});

/** A rank's part of a tensor of the whole model. */
function partOf(whole: Tensor, name: string, ranks: number, rank: number): Tensor {
  const [box] = boxesOfRank(layoutOf(ranks), { name, shape: SHAPES[name]! }, rank);
  return box!.size.reduce((part, size, axis) => part.slice(box!.offset[axis]!, box!.offset[axis]! + size, axis), whole);
}

/** Of the whole model: the same for all ranks. */
const drawn = (name: string, seed: number) =>
  randn(SHAPES[name]!, { generator: new Generator(1000 * seed + Object.keys(SHAPES).indexOf(name)) });

class Rank {
  readonly weights: Record<string, Tensor>;
  readonly optimizer: NAdam;

  constructor(
    readonly ranks: number,
    readonly rank: number,
  ) {
    const own = Object.keys(SHAPES).map(
      (name) => [name, parameter(partOf(drawn(name, 0), name, ranks, rank))] as const,
    );
    this.weights = Object.fromEntries(own);
    this.optimizer = new NAdam(Object.entries(this.weights), { lr: 0.01, weightDecay: 0.1 });
  }

  async load(folder: string): Promise<this> {
    const loaded = await loadCheckpoint(folder, { layout: layoutOf(this.ranks), rank: this.rank });
    for (const [name, weight] of Object.entries(this.weights)) weight.detach().set(loaded.tensors[name]!);
    this.optimizer.loadStateDict(optimizerState(loaded));
    return this;
  }

  train(from: number, to: number): this {
    for (let step = from; step < to; step++) {
      for (const [name, weight] of Object.entries(this.weights))
        weight.grad = partOf(drawn(name, 1 + step), name, this.ranks, this.rank);
      this.optimizer.step();
    }
    return this;
  }

  contents(step: number) {
    const { tensors, values } = optimizerContents(this.optimizer.stateDict());
    return { step, tensors: { ...this.weights, ...tensors }, values };
  }

  /** Weights and state by name. */
  all(): Record<string, Tensor> {
    const state = Object.entries(optimizerContents(this.optimizer.stateDict()).tensors);
    return { ...this.weights, ...Object.fromEntries(state.map(([name, { tensor }]) => [name, tensor])) };
  }
}

async function save(folder: string, ranks: readonly Rank[], step: number): Promise<void> {
  const layout = layoutOf(ranks.length);
  const all = localCommunicators(ranks.length).map((communicator, rank) =>
    saveCheckpoint(folder, ranks[rank]!.contents(step), { communicator, layout, checkReplicas: true }),
  );
  await Promise.all(all);
}

it("64 -> 56 -> 1", async () => {
  const folder = mkdtempSync(join(tmpdir(), "many-ranks-"));
  try {
    const first = Array.from({ length: 64 }, (_, rank) => new Rank(64, rank).train(0, 5));
    await save(join(folder, "64"), first, 5);
    const loading = Array.from({ length: 56 }, (_, rank) => new Rank(56, rank).load(join(folder, "64")));
    const second = (await Promise.all(loading)).map((rank) => rank.train(5, 10));
    await save(join(folder, "56"), second, 10);
    await mergeCheckpoint(join(folder, "56"), join(folder, "merged.safetensors"));

    const alone = new Rank(1, 0).train(0, 10).all();
    const { tensors } = await loadCheckpoint(join(folder, "merged.safetensors"));
    expect(Object.keys(tensors).sort()).toEqual(Object.keys(alone).sort());
    for (const [name, tensor] of Object.entries(alone))
      expect(tensors[name]!.bytesSync(), name).toEqual(tensor.bytesSync());
    // One process goes on, too: counters and options came along.
    const on = (await new Rank(1, 0).load(join(folder, "56"))).train(10, 12);
    const never = new Rank(1, 0).train(0, 12);
    for (const name of Object.keys(SHAPES))
      expect(on.weights[name]!.bytesSync(), name).toEqual(never.weights[name]!.bytesSync());
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
