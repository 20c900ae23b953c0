/**
 * Mixed-precision training: 16-bit weights with float32 copies, a scaled loss, clipped gradients and averaged weights. The step is a
 * compiled function of its batch.
 */

import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from "@opt/checkpoint";
import {
  type Compiled,
  compile,
  type Device,
  ExponentialMovingAverage,
  Generator,
  GradScaler,
  type GradScalerState,
  noGrad,
  type Tensor,
  tidy,
} from "@opt/core";
import { OneCycleLR, type SchedulerState } from "@opt/core/schedules";
import { Alphabet, DataLoader, type DataLoaderState, Windows } from "@opt/data";
import { crossEntropy } from "@opt/nn";
import { Gpt } from "./model";

export interface TrainingOptions {
  readonly text: string;
  readonly device: Device;
  readonly dtype: "bf16" | "f16" | "f32";
  readonly width: number;
  readonly length: number;
  readonly blocks: number;
  readonly heads: number;
  readonly batch: number;
  /** Of the whole run: the schedule ends there. */
  readonly steps: number;
  /** Of the averaged weights. */
  readonly decay: number;
  readonly seed: number;
  /** false: every step runs eagerly. */
  readonly compiled: boolean;
}

/** What a checkpoint has beside tensors and the optimizer's options. */
interface Values {
  readonly averaged: number;
  readonly scaler: GradScalerState;
  readonly schedule: SchedulerState;
  readonly loader: DataLoaderState;
}

/** The share of the text that is trained on; the rest is for evaluation. */
const SHARE = 0.9;

/** All the state of a run. */
export class Training {
  readonly alphabet: Alphabet;
  readonly model: Gpt;
  /** Draws first weights and the order of batches, and may draw text. */
  readonly generator: Generator;
  readonly optimizer: AdamW;
  readonly scaler = new GradScaler({ initScale: 1024, growthInterval: 50 });
  readonly averages: ExponentialMovingAverage;
  readonly schedule: OneCycleLR;
  readonly loader: DataLoader<[Tensor, Tensor], [Tensor, Tensor]>;
  /** Steps that were made. */
  step = 0;
  private readonly unseen: Windows;
  private readonly compiledStep: Compiled<[input: Tensor, target: Tensor], Tensor>;
  private readonly lossOf: Compiled<[input: Tensor, target: Tensor], Tensor>;

  constructor(private readonly options: TrainingOptions) {
    const { text, device, dtype, width, length, blocks, heads, batch, steps, decay, seed } = options;
    this.alphabet = new Alphabet(text);
    const tokens = this.alphabet.encode(text);
    const held = Math.floor(tokens.length * SHARE);
    this.generator = new Generator(seed);
    const { generator } = this;
    const shape = { tokens: this.alphabet.length, width, length, blocks, heads };
    this.model = new Gpt({ ...shape, generator, device, dtype });
    this.optimizer = new AdamW(this.model.namedParameters(), { lr: 3e-3, weightDecay: 0.1, clip: { norm: 1 } });
    this.averages = new ExponentialMovingAverage(this.model.namedParameters(), { decay });
    this.schedule = new OneCycleLR(this.optimizer, { maxLr: 6e-3, totalSteps: steps + 1 });
    const seen = new Windows(tokens.subarray(0, held), { length });
    this.loader = new DataLoader(seen, { batchSize: batch, shuffle: true, dropLast: true, generator });
    this.unseen = new Windows(tokens.subarray(held), { length, stride: length });
    this.compiledStep = compile((input, target) => this.trainOn(input, target));
    this.lossOf = compile((input, target) => noGrad(() => this.forward(input, target)));
  }

  /** Trains until `until` steps were made. The loss of each goes to `report`, and is freed after it. */
  async train(until: number, report: (loss: Tensor) => void | Promise<void>): Promise<void> {
    while (this.step < until) {
      for (const [input, target] of this.loader) {
        const { compiled } = this.options;
        const loss = compiled ? this.compiledStep(input, target) : tidy(() => this.trainOn(input, target));
        this.schedule.step();
        this.step++;
        await report(loss);
        loss.dispose();
        if (this.step === until) break;
      }
    }
  }

  private forward(input: Tensor, target: Tensor): Tensor {
    return crossEntropy(this.model.forward(input).to("f32"), target);
  }

  private trainOn(input: Tensor, target: Tensor): Tensor {
    const { optimizer, scaler } = this;
    const loss = this.forward(input, target);
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
    this.averages.update();
    return loss;
  }

  /** The mean loss on unseen text, of the averaged weights. */
  async evaluate(): Promise<number> {
    const losses: number[] = [];
    await this.averages.averaged(async () => {
      for (const [input, target] of new DataLoader(this.unseen, { batchSize: this.options.batch })) {
        const loss = this.lossOf(input, target);
        losses.push(await loss.item());
        loss.dispose();
      }
    });
    return losses.reduce((sum, loss) => sum + loss, 0) / losses.length;
  }

  async save(folder: string): Promise<void> {
    const optimizer = optimizerContents(this.optimizer.stateDict());
    const { n_averaged, ...averages } = this.averages.stateDict();
    await saveCheckpoint(folder, {
      step: this.step,
      tensors: { ...this.model.stateDict(), ...optimizer.tensors, ...averages },
      values: {
        ...optimizer.values,
        averaged: n_averaged as number,
        scaler: this.scaler.stateDict(),
        schedule: this.schedule.stateDict(),
        loader: this.loader.stateDict(),
      },
    });
  }

  /** Goes on where `save` was called by a run of the same options. */
  async resume(folder: string): Promise<void> {
    const saved = await loadCheckpoint(folder);
    const { tensors, values } = saved;
    const { averaged, scaler, schedule, loader } = values as unknown as Values;
    const named = (prefix: string) =>
      Object.fromEntries(Object.keys(this.model.stateDict()).map((name) => [prefix + name, tensors[prefix + name]!]));
    this.model.loadStateDict(named(""));
    this.optimizer.loadStateDict(optimizerState(saved));
    this.averages.loadStateDict({ n_averaged: averaged, ...named("module.") });
    this.scaler.loadStateDict(scaler);
    this.schedule.loadStateDict(schedule);
    this.loader.loadStateDict(loader);
    this.step = saved.step!;
    for (const tensor of Object.values(tensors)) tensor.dispose();
  }

  dispose(): void {
    for (const compiled of [this.compiledStep, this.lossOf]) compiled.dispose();
    this.optimizer.dispose();
    this.scaler.dispose();
    this.averages.dispose();
    for (const parameter of this.model.parameters()) parameter.dispose();
  }
}
