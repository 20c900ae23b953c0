/** What `opt-run --prove-resume` gets to know of a run: its whole state and its samples, step by step. */
import type { RecordedRun, SavedTensor } from "@opt/checkpoint";
import { check, show, Tensor } from "@opt/core";
import { environmentVariable } from "@opt/core/backend";
import { copyTree, freeTree, mapTree } from "../tree";
import type { Callback, FitState } from "./events";
import { WHERE } from "./options";

/** Whether a proof breaks the run behind this step: it is saved. */
export const isBreak = (step: number) => step === breakAt();

/** NaN where there is none. */
const breakAt = () => Number(environmentVariable("OPT_RUN_BREAK"));

export class Proof {
  #samples: unknown[] = [];

  #run: Promise<RecordedRun> | undefined;

  /** Undefined where nothing is to be proven. @throws OptError BAD_ARGUMENT for a run that saves where others do */
  static of(callbacks: readonly Callback[]): Proof | undefined {
    const folder = environmentVariable("OPT_RUN_FOLDER");
    if (folder === undefined) return undefined;
    const other = callbacks.find(({ saves }) => saves && !saves.folder.startsWith(folder))?.saves?.folder;
    const problem = () => `a run that is proven must save in OPT_RUN_FOLDER, got ${show(other)}.`;
    const cure = 'checkpoints(process.env.OPT_RUN_FOLDER ?? "runs/a")';
    check(other === undefined, "BAD_ARGUMENT", WHERE, problem, cure);
    return new Proof();
  }

  isOver(step: number): boolean {
    return step > breakAt();
  }

  /** The next step trains on this batch, too. */
  saw(batch: unknown): void {
    const isPlain = (leaf: unknown) => leaf instanceof Tensor || ArrayBuffer.isView(leaf) || Object(leaf) !== leaf;
    this.#samples.push(copyTree(mapTree(batch, (leaf) => (isPlain(leaf) ? leaf : null))));
  }

  /** In the hooks of callbacks that save, as ranks gather their state. */
  readonly callback: Callback = {
    onTrainBegin: (state) => this.#record(state),
    onStepEnd: (state) => this.#record(state),
    onEpochEnd: (state) => this.#record(state),
  };

  async #record(state: FitState): Promise<void> {
    const { tensors, values = {} } = await state.contents();
    const { optimizer, fit } = values as { optimizer: object; fit?: object };
    const weights = new Set(state.weights.namedTensors().map(([name]) => name));
    const parts: Record<"model" | "state" | "averages" | "run", Record<string, SavedTensor>> = {
      ...{ model: {}, state: {}, averages: {}, run: {} },
    };
    for (const [name, tensor] of Object.entries(tensors as Record<string, SavedTensor>)) {
      const [own] = /^fit\.(ema\b)?/.exec(name) ?? [];
      const part = weights.has(name) ? "model" : own === undefined ? "state" : own === "fit.ema" ? "averages" : "run";
      parts[part][name] = tensor;
    }
    const samples = this.#samples.length > 0 && { samples: this.#samples };
    const { model, averages, run } = parts;
    this.#run ??= import("@opt/checkpoint").then(({ recordedRun }) => recordedRun("."));
    await (await this.#run).record(state.step, {
      model,
      optimizer: { state: parts.state, ...optimizer },
      averages,
      run,
      ...fit,
      ...samples,
    });
    freeTree(this.#samples);
    this.#samples = [];
  }
}
