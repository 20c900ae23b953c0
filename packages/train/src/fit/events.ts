/** What a run tells about itself: its events, the state that callbacks see, and what they may ask for. */
import type { CheckpointContents, FileSystem } from "@opt/checkpoint";
import type { WeightAverage } from "@opt/core";
import type { Module } from "@opt/nn";
import type { FitCommunicator, FitOptimizer, Placing, Weights } from "./parts";

/** Numbers of one epoch: `loss`, `val_loss`, each metric as `accuracy` and `val_accuracy`. On several ranks, of all samples. */
export interface EpochRecord {
  /** Mean over the samples of the epoch. */
  readonly loss: number;
  /** Learning rate of the first group after the epoch. */
  readonly lr: number;
  /** Of training, without validation. */
  readonly seconds: number;
  readonly [name: string]: number;
}

/** Returned by `fit`. */
export interface History {
  readonly epochs: EpochRecord[];
  /** The loss of every step, on this rank. */
  readonly losses: number[];
}

/** The events of a run, in the order in which they come. `save` follows each checkpoint. */
export type FitEventType = (typeof fitEvents)[number];

export const fitEvents = [
  "trainBegin",
  "epochBegin",
  "stepBegin",
  "stepEnd",
  "evaluate",
  "epochEnd",
  "save",
  "trainEnd",
] as const;

export type HookName = `on${Capitalize<FitEventType>}`;

export const hookOf = (type: FitEventType) => `on${type[0]!.toUpperCase()}${type.slice(1)}` as HookName;

/** A run as it stands. It is one object, which the run updates. */
export interface FitState {
  readonly model: Module;
  /** The model, or what this rank has of a `FullyShardedDataParallel`. */
  readonly weights: Weights;
  readonly optimizer: FitOptimizer;
  /** The averages of the weights; undefined without the option. */
  readonly ema: WeightAverage | undefined;
  /** Epochs of the whole run. */
  readonly epochs: number;
  /** The current epoch, from 0; at `epochEnd` the number of epochs done. */
  readonly epoch: number;
  /** Optimizer steps done since the run began, also before it was resumed. Those that the scaler skipped count, too. */
  readonly step: number;
  /** How many of them the scaler skipped. */
  readonly skippedSteps: number;
  /** Whether it skipped the last one: then neither the schedule nor the averages have moved. */
  readonly wasSkipped: boolean;
  /** Steps done in this epoch. */
  readonly epochStep: number;
  /** Steps of an epoch; undefined where the data have no length. */
  readonly stepsPerEpoch: number | undefined;
  /** Samples of this epoch so far, on this rank. */
  readonly samples: number;
  /** Loss of the last step that was read. Devices that answer later are some steps behind. NaN before the first. */
  readonly loss: number;
  /** Learning rate of the first group. */
  readonly lr: number;
  /** Means of this epoch so far, on this rank: `loss` and each metric. From `evaluate` on also `val_loss` and the like. */
  readonly logs: Readonly<Record<string, number>>;
  readonly history: History;
  /** Whether epochs have numbers of validation: `val_loss` and the like. */
  readonly hasValidation: boolean;
  /** The ranks that have other samples. Undefined in one process. */
  readonly communicator: FitCommunicator | undefined;
  /** The ranks that call `saveCheckpoint` together, and its layout. Undefined in one process. */
  readonly placing: Placing | undefined;
  /** The folder of the last checkpoint; undefined before the first. */
  readonly checkpoint: string | undefined;
  /** What ended the run, at `trainEnd`; undefined where nothing failed. */
  readonly error: unknown;
  /**
   * Everything that `resume` needs, for `saveCheckpoint`: await that in the hook, its tensors are the live ones. All ranks call it; the
   * first one has the record of the run. @throws OptError BAD_STATE within a step, or after one that failed
   */
  contents(options?: ContentsOptions): Promise<CheckpointContents>;
}

export interface ContentsOptions {
  /**
   * Leaves out what does not train and has the numbers that it had when the run began, as the base of an adapter. `resume` then needs the
   * same base, and checks it. For callbacks that say so in `saves`; BAD_STATE for others. Default false.
   */
  readonly trainable?: boolean;
}

/** What a callback may ask of a run. */
export interface FitControl {
  /**
   * Set it to true: the run ends after this step, on all ranks. A checkpoint keeps it, so a resumed run trains no further, unless it is
   * false after `onTrainBegin`. To go on later, end the run by `signal`.
   */
  stop: boolean;
  /** Says that a checkpoint was written to `folder`: the other callbacks get `onSave`. */
  saved(folder: string): Promise<void>;
}

/** Handles an event. The run waits for a promise that it returns. */
export type EventHandler = (state: FitState, control: FitControl) => unknown;

/**
 * Hooks of a run: a plain object.
 *
 * @example
 * const stopAt100: Callback = {
 *   onStepEnd(state, control) {
 *     if (state.step === 100) control.stop = true;
 *   },
 * };
 */
export interface Callback {
  /** Under which a checkpoint keeps its state. Default: the name of its class. */
  readonly name?: string;
  /** Where it saves checkpoints: it comes after the other callbacks, and `resume: true` looks there. */
  readonly saves?: {
    readonly folder: string;
    readonly fileSystem?: FileSystem | undefined;
    /** It leaves out what `contents({ trainable: true })` does. */
    readonly trainable?: boolean;
  };
  /** Only the first of several ranks calls it: for what writes. */
  readonly firstRankOnly?: boolean;
  onTrainBegin?: EventHandler;
  onEpochBegin?: EventHandler;
  /** Before each optimizer step, with the batch not yet used. */
  onStepBegin?: EventHandler;
  onStepEnd?: EventHandler;
  /** After the validation of an epoch. */
  onEvaluate?: EventHandler;
  onEpochEnd?: EventHandler;
  onSave?: EventHandler;
  /** Also after an error: `state.error`. */
  onTrainEnd?: EventHandler;
  /** What belongs into a checkpoint: plain JSON, with tensors among it. */
  stateDict?(): object;
  loadStateDict?(state: object): void;
}

/** One event of a run that is iterated. */
export interface FitEvent {
  readonly type: FitEventType;
  readonly state: FitState;
}
