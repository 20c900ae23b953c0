/** Saves a run in slices for four ranks, cuts them anew for three, and goes on from there beside the run that never stopped. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { loadCheckpoint, optimizerContents, optimizerState, reshardCheckpoint, saveCheckpoint } from "@opt/checkpoint";
import { Generator } from "@opt/core";
import { DataLoader, type DataLoaderState } from "@opt/data";
import { NAdam } from "@opt/nadam";
import type { Batch, Mnist } from "./data";
import { digitNetwork } from "./model";
import { trainingStep } from "./step";

const HIDDEN = 64;
const BATCH = 64;
const BEFORE = 30;
const AFTER = 20;

export interface Resumed {
  /** Losses before the checkpoint. */
  readonly before: readonly number[];
  /** Losses after the checkpoint, of the run that never stopped and of the resumed one. */
  readonly uninterrupted: readonly number[];
  readonly resumed: readonly number[];
}

class Run {
  readonly model = digitNetwork(HIDDEN, new Generator(3));
  readonly optimizer = new NAdam(this.model.namedParameters());
  readonly loader: DataLoader<Batch, Batch>;
  private readonly step = trainingStep(this.model, this.optimizer);
  readonly #batches: Iterator<Batch>;

  constructor({ training }: Mnist) {
    this.loader = new DataLoader(training, { batchSize: BATCH, shuffle: true, generator: new Generator(4) });
    this.#batches = this.loader[Symbol.iterator]();
  }

  /** The loss of every step. */
  async train(steps: number): Promise<number[]> {
    const losses: number[] = [];
    while (losses.length < steps) {
      const loss = this.step(this.#batches.next().value);
      losses.push(await loss.item());
      loss.dispose();
    }
    return losses;
  }

  dispose(): void {
    this.#batches.return?.();
    this.step.dispose();
    this.optimizer.dispose();
    for (const parameter of this.model.parameters()) parameter.dispose();
  }
}

/** Leaves both checkpoints under `folder`: `ranks-4` as saved, `ranks-3` as cut anew. */
export async function resume(data: Mnist, folder: string): Promise<Resumed> {
  const [saved, cut] = [join(folder, "ranks-4"), join(folder, "ranks-3")];
  for (const old of [saved, cut]) await rm(old, { recursive: true, force: true });

  const first = new Run(data);
  const before = await first.train(BEFORE);
  const state = optimizerContents(first.optimizer.stateDict());
  const values = { ...state.values, loader: first.loader.stateDict() };
  const tensors = { ...first.model.stateDict(), ...state.tensors };
  await saveCheckpoint(saved, { step: BEFORE, tensors, values }, { world: 4 });
  const uninterrupted = await first.train(AFTER);
  first.dispose();

  await reshardCheckpoint(saved, cut, { ranks: 3 });
  const second = new Run(data);
  const loaded = await loadCheckpoint(cut);
  second.model.loadStateDict(
    Object.fromEntries(Object.keys(second.model.stateDict()).map((name) => [name, loaded.tensors[name]!])),
  );
  second.optimizer.loadStateDict(optimizerState(loaded));
  second.loader.loadStateDict(loaded.values.loader as unknown as DataLoaderState);
  for (const tensor of Object.values(loaded.tensors)) tensor.dispose();
  const resumed = await second.train(AFTER);
  second.dispose();
  return { before, uninterrupted, resumed };
}
