/** What a run of `fit` holds: what it was given, where it stands, and its numbers so far. */
import type { CheckpointContents } from "@opt/checkpoint";
import { check, checkOptions, type Tensor } from "@opt/core";
import { Reads } from "../metrics/reads";
import { Base } from "./base";
import type { Callback, ContentsOptions, FitState, History } from "./events";
import type { PlacedModel } from "./model";
import { type FitOptions, WHERE } from "./options";
import { contentsOf, type Resumable } from "./resume";
import { Totals } from "./totals";

export class TrainState<Batch> implements FitState, Resumable<Batch> {
  epoch = 0;
  step = 0;
  epochStep = 0;
  skippedSteps = 0;
  wasSkipped = false;
  /** A batch was taken whose step is not done. */
  isInStep = false;
  batches = 0;
  seconds = 0;
  isEpochDone = false;
  stop = false;
  error: unknown;
  checkpoint: string | undefined;
  readonly history: History = { epochs: [], losses: [] };
  readonly totals: Totals;
  /** Of this epoch's steps. */
  readonly reads = new Reads();
  readonly base: Base;
  readonly #copies: Tensor[] = [];
  /** The loop asks for one more batch after a stop, to see whether the epoch is over. */
  loader: object | null | undefined;
  /** Numbers of this epoch's validation, under their names in history. */
  validated: Readonly<Record<string, number>> = {};

  /** @param options their data are this rank's share */
  constructor(
    readonly placed: PlacedModel,
    readonly options: FitOptions<Batch>,
    readonly callbacks: readonly Callback[],
  ) {
    this.totals = new Totals(options.metrics ?? []);
    this.base = new Base(placed);
  }

  get model() {
    return this.placed.module;
  }

  get weights() {
    return this.placed.weights;
  }

  get communicator() {
    return this.placed.communicator;
  }

  get placing() {
    return this.placed.placing;
  }

  get optimizer() {
    return this.options.optimizer;
  }

  get ema() {
    return this.options.ema;
  }

  get epochs(): number {
    return this.options.epochs;
  }

  get hasValidation(): boolean {
    return this.options.validation !== undefined;
  }

  get stepsPerEpoch(): number | undefined {
    const { length } = this.options.data as { readonly length?: number };
    const isKnown = typeof length === "number" && typeof this.options.data !== "function";
    return isKnown ? Math.ceil(length / (this.options.accumulate ?? 1)) : undefined;
  }

  get samples(): number {
    return this.totals.samples;
  }

  get loss(): number {
    return this.totals.last;
  }

  get lr(): number {
    return this.optimizer.groups[0]?.lr ?? Number.NaN;
  }

  get logs(): { loss: number; [name: string]: number } {
    return { ...this.totals.means(), ...this.validated };
  }

  async contents(options: ContentsOptions = {}): Promise<CheckpointContents> {
    checkOptions(WHERE, options, { trainable: "boolean" });
    const problem = () => `a checkpoint must be of the end of a step, got a call within step ${this.step + 1}.`;
    check(!this.isInStep, "BAD_STATE", WHERE, problem, "Call contents() in onStepEnd or onEpochEnd.");
    const { trainable = false } = options;
    await this.reads.drain(); // losses and sums of the steps before are part of it
    const { contents, copies } = await contentsOf(this, trainable ? await this.base.unchanged() : {});
    this.#copies.push(...copies);
    return contents;
  }

  /** What contents had in memory of their own. */
  freeCopies(): void {
    for (const copy of this.#copies.splice(0)) copy.dispose();
  }

  /** The numbers of the epoch before are gone, also those of its validation. */
  beginEpoch(): void {
    this.totals.reset();
    this.validated = {};
  }

  /** The epoch is over, and the next one is due. */
  nextEpoch(): void {
    this.epoch++;
    this.epochStep = 0;
    this.batches = 0;
    this.seconds = 0;
    this.isEpochDone = false;
  }
}
