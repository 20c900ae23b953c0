/** A run as a checkpoint: weights, optimizer state, the order of the images, and the curves. */
import {
  type CheckpointContents,
  checkpointBlob,
  type LoadedPlainTensor,
  loadCheckpoint,
  optimizerContents,
  optimizerState,
  saveCheckpoint,
} from "@opt/checkpoint";
import { OptError, type Tensor, tensorFromBytes } from "@opt/core";
import { isOptimizerName } from "./optimizers";
import type { Measured } from "./run";
import type { Progress, Session, Settings } from "./session";

/** Where the browser keeps runs among the page's own files. */
const FOLDER = "digits";
const LOSSES = "curve.losses";
/** Rows of step and accuracy. */
const MEASURED = "curve.measured";

export interface Curves {
  readonly losses: readonly number[];
  readonly measured: readonly Measured[];
}

interface Values {
  readonly settings: Settings;
  readonly progress: Progress;
  readonly optimizer: unknown;
}

function contentsOf(session: Session, { losses, measured }: Curves): CheckpointContents {
  const { tensors, values } = optimizerContents(session.optimizer.stateDict());
  const floats = (numbers: readonly number[], shape: readonly number[]) => ({
    dtype: "f32",
    shape,
    data: Float32Array.from(numbers),
  });
  const rows = measured.flatMap(({ step, accuracy }) => [step, accuracy]);
  return {
    step: session.steps,
    tensors: {
      ...session.model.stateDict(),
      ...tensors,
      [LOSSES]: floats(losses, [losses.length]),
      [MEASURED]: floats(rows, [measured.length, 2]),
    },
    values: { ...values, settings: { ...session.settings }, progress: session.progress },
  };
}

/** One safetensors file. */
export const fileOf = (session: Session, curves: Curves): Promise<Blob> => checkpointBlob(contentsOf(session, curves));

/** Keeps the run where it outlives the page, in the place of the one before. */
export async function keep(session: Session, curves: Curves): Promise<void> {
  // Numbered by the time: what was kept last is the newest, also where it has fewer steps.
  await saveCheckpoint(FOLDER, { ...contentsOf(session, curves), step: Date.now() }, { keep: 1 });
}

/** What was kept, or undefined. */
export async function kept(): Promise<SavedRun | undefined> {
  try {
    return await SavedRun.open(FOLDER);
  } catch (error) {
    if (error instanceof OptError && error.code === "MISSING") return undefined;
    throw error;
  }
}

export class SavedRun {
  private constructor(
    readonly values: Values,
    private readonly tensors: Readonly<Record<string, LoadedPlainTensor>>,
  ) {}

  /** @throws an error that says in words what is wrong with the file */
  static async open(place: Blob | string): Promise<SavedRun> {
    const { tensors, values } = await loadCheckpoint(place, { as: "plain" });
    const { settings, progress } = values as unknown as Partial<Values>;
    if (settings === undefined || progress === undefined || !tensors[LOSSES] || !tensors[MEASURED])
      throw new Error("This checkpoint was not written by this page.");
    if (!isOptimizerName(settings.optimizer))
      throw new Error(`This page does not know the file's optimizer, ${settings.optimizer}.`);
    return new SavedRun(values as unknown as Values, tensors);
  }

  private floats(name: string): Float32Array {
    return new Float32Array(this.tensors[name]!.data.slice().buffer);
  }

  get curves(): { losses: number[]; measured: Measured[] } {
    const rows = this.floats(MEASURED);
    const row = (_: unknown, i: number) => ({ step: rows[2 * i]!, accuracy: rows[2 * i + 1]! });
    return { losses: [...this.floats(LOSSES)], measured: Array.from({ length: rows.length / 2 }, row) };
  }

  /** Puts weights, state and progress into a new session of the same settings. */
  loadInto(session: Session): void {
    const made: Record<string, Tensor> = {};
    for (const [name, { data, shape }] of Object.entries(this.tensors)) {
      if (name !== LOSSES && name !== MEASURED) made[name] = tensorFromBytes(data, shape);
    }
    try {
      const weights = Object.keys(session.model.stateDict()).map((name) => [name, made[name]!] as const);
      session.model.loadStateDict(Object.fromEntries(weights));
      session.optimizer.loadStateDict(optimizerState({ tensors: made, values: this.values as never }));
      session.progress = this.values.progress;
    } finally {
      for (const tensor of Object.values(made)) tensor.dispose();
    }
  }
}
