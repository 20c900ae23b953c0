/** A run that is saved, re-sliced and resumed computes the bits of one that never stopped. */
import { AdamW } from "@opt/adam-amsgrad";
import {
  ExponentialMovingAverage,
  Generator,
  GradScaler,
  init,
  type Optimizer,
  type Parameters,
  parameter,
  type Tensor,
  tensor,
} from "@opt/core";
import { NAdam } from "@opt/nadam";
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { expectCode } from "../../testing/expect-code";
import { optimizerContents, optimizerState } from "../format/optimizer-state";
import { type Box, elementsIn, wholeOf } from "../layout/box";
import { defaultLayout } from "../layout/layout";
import { boxesOfRank } from "../layout/placements";
import { loadCheckpoint } from "../operations";
import { copyRegion } from "../plan/runs";
import { mergeCheckpoint } from "../rewrite/merge";
import { reshardCheckpoint } from "../rewrite/reshard";
import { localCommunicators } from "../save/ranks/communicator";
import { saveCheckpoint } from "../save/save";

const SHAPES: Record<string, number[]> = { "fc.weight": [7, 5], "fc.bias": [7], scale: [] };
type Make = (params: Parameters) => Optimizer<never>;

/** Values that depend on nothing but where they stand: what a rank gets for its slice is the slice of the whole. */
function wave(shape: readonly number[], seed: number): Float32Array {
  return Float32Array.from({ length: elementsIn(wholeOf(shape)) }, (_, i) => Math.sin(seed * 12.9898 + i * 78.233));
}

function cut(values: Float32Array, shape: readonly number[], box: Box): Float32Array {
  const slice = new Float32Array(elementsIn(box));
  copyRegion(wholeOf(shape), new Uint8Array(values.buffer), box, new Uint8Array(slice.buffer), box, 4);
  return slice;
}

function boxOf(name: string, rank: number, world: number): Box {
  return boxesOfRank(defaultLayout(world), { name, shape: SHAPES[name]! }, rank)[0]!;
}

class Rank {
  readonly params: Record<string, Tensor>;
  readonly optimizer: Optimizer<never>;

  constructor(
    readonly rank: number,
    readonly world: number,
    make: Make,
    values?: Readonly<Record<string, Tensor>>,
  ) {
    const entries = Object.entries(SHAPES).map(([name, shape]): [string, Tensor] => {
      const box = boxOf(name, rank, world);
      const data = values ? values[name]!.dataSync() : cut(wave(shape, 1), shape, box);
      return [name, parameter(data, { shape: [...box.size], name })];
    });
    this.params = Object.fromEntries(entries);
    this.optimizer = make(entries);
  }

  train(from: number, to: number): this {
    for (let step = from; step < to; step++) {
      for (const [name, param] of Object.entries(this.params)) {
        const shape = SHAPES[name]!;
        const gradient = cut(wave(shape, 100 + step), shape, boxOf(name, this.rank, this.world));
        param.grad = tensor(gradient, { shape: [...param.shape] });
      }
      this.optimizer.step();
    }
    return this;
  }

  contents(step: number) {
    const { tensors, values } = optimizerContents(this.optimizer.stateDict());
    return { step, tensors: { ...this.params, ...tensors }, values };
  }
}

/** Everything a rank holds, as bits: parameters, moments, step counts and products. */
function bits({ params, optimizer }: Rank): unknown {
  const { groups, state } = optimizer.stateDict();
  const plain = (value: number | Tensor) =>
    typeof value === "number" ? value : [...new Uint32Array(value.dataSync().slice().buffer)];
  const entries = Object.entries(state).map(([name, entry]) => [
    name,
    Object.fromEntries(Object.entries(entry).map(([key, value]) => [key, plain(value)])),
  ]);
  return {
    params: Object.fromEntries(Object.entries(params).map(([name, param]) => [name, plain(param)])),
    state: Object.fromEntries(entries),
    groups,
  };
}

async function resumed(
  fileSystem: MemoryFileSystem,
  folder: string,
  rank: number,
  world: number,
  make: Make,
): Promise<Rank> {
  const loaded = await loadCheckpoint(folder, { fileSystem, rank, world });
  const one = new Rank(rank, world, make, loaded.tensors);
  one.optimizer.loadStateDict(optimizerState(loaded));
  return one;
}

describe.each<[string, Make]>([
  ["NAdam", (params) => new NAdam(params, { lr: 0.01, weightDecay: 0.02 }) as unknown as Optimizer<never>],
  ["AMSGrad", (params) => new AdamW(params, { lr: 0.01, amsgrad: true }) as unknown as Optimizer<never>],
])("%s, 10 steps on 4 ranks, re-sliced to 2, to 3, merged to 1", (name, make) => {
  it("continues bit for bit: 10 more steps equal 20 uninterrupted ones", async () => {
    const fileSystem = new MemoryFileSystem();
    const four = localCommunicators(4).map((communicator) => {
      const rank = new Rank(communicator.rank, 4, make).train(0, 10);
      return saveCheckpoint("/4", rank.contents(10), { communicator, fileSystem });
    });
    await Promise.all(four);
    await reshardCheckpoint("/4", "/2", { ranks: 2, fileSystem });
    await reshardCheckpoint("/2", "/3", { ranks: 3, fileSystem });
    await reshardCheckpoint("/3", "/1", { ranks: 1, fileSystem });
    await mergeCheckpoint("/3", "/merged.safetensors", { fileSystem });
    for (const world of [1, 2, 3, 4]) {
      for (let rank = 0; rank < world; rank++) {
        const uninterrupted = bits(new Rank(rank, world, make).train(0, 20));
        for (const path of [`/${world}`, "/merged.safetensors"]) {
          const again = (await resumed(fileSystem, path, rank, world, make)).train(10, 20);
          expect(bits(again)).toEqual(uninterrupted);
        }
      }
    }
    const { values } = await loadCheckpoint("/3", { fileSystem, as: "plain" });
    const counters = (values.optimizer as { counters: Record<string, Record<string, number>> }).counters["fc.weight"]!;
    expect(counters.step).toBe(10);
    if (name === "NAdam") expect(counters.mu_product).toBeLessThan(1);
  });
});

it("leaves no tensors behind but those that it returns, `into` included", async () => {
  const [fileSystem, device] = [new MemoryFileSystem(), await init("js")];
  const weight = tensor([1, 2, 3], { device });
  await saveCheckpoint("run", { step: 1, tensors: { weight, "weight.half": weight } }, { fileSystem });
  const before = device.memory();
  const { tensors } = await loadCheckpoint("run", { fileSystem });
  for (const one of Object.values(tensors)) one.dispose();
  await loadCheckpoint("run", { fileSystem, into: { weight } });
  expect(device.memory()).toEqual(before);
});

it("what was saved of a generator and a scaler is taken as it is loaded, by TypeScript too", async () => {
  const fileSystem = new MemoryFileSystem();
  const [generator, scaler] = [new Generator(3), new GradScaler({ initScale: 8 })];
  generator.nextFloat();
  const values = { random: generator.stateDict(), scaler: scaler.stateDict() };
  await saveCheckpoint("run", { step: 1, tensors: {}, values }, { fileSystem });
  const loaded = await loadCheckpoint("run", { fileSystem });
  const [goesOn, scales] = [new Generator(4), new GradScaler()];
  goesOn.loadStateDict(loaded.values.random);
  scales.loadStateDict(loaded.values.scaler);
  expect([goesOn.nextFloat(), await scales.getScale()]).toEqual([generator.nextFloat(), 8]);
});

it("an average goes on after a save, its count among the values; given whole it is rejected, and told so", async () => {
  const fileSystem = new MemoryFileSystem();
  const w = parameter([1, 2], { device: await init("js") });
  const average = new ExponentialMovingAverage([w], { decay: 0.5 });
  const restored = new ExponentialMovingAverage([w], { decay: 0.5 });
  average.update();
  const state = average.stateDict();
  const whole = saveCheckpoint("run", { step: 1, tensors: state as never }, { fileSystem });
  expect(await expectCode("BAD_ARGUMENT", whole)).toMatch(/"n_averaged".*values/);
  const { n_averaged, ...tensors } = state;
  await saveCheckpoint("run", { step: 1, tensors, values: { n_averaged: n_averaged as number } }, { fileSystem });
  const loaded = await loadCheckpoint("run", { fileSystem });
  restored.loadStateDict({ ...loaded.tensors, ...loaded.values });
  expect(restored.stateDict().n_averaged).toBe(1);
  expect([...restored.stateDict()["module.0"]!.dataSync()]).toEqual([1, 2]);
});
