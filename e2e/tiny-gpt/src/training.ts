/** Mixed-precision training: 16-bit weights with float32 copies, a scaled loss, clipped gradients and averaged weights. */

import { AdamW } from "@opt/adam-amsgrad";
import { type Device, ExponentialMovingAverage, Generator, GradScaler, type Tensor } from "@opt/core";
import { OneCycleLR } from "@opt/core/schedules";
import { Alphabet, DataLoader, Windows } from "@opt/data";
import { crossEntropy } from "@opt/nn";
import { type Callback, evaluate, type FitOptions, fit, type History } from "@opt/train";
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

type Batch = [input: Tensor, target: Tensor];

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
  readonly loader: DataLoader<Batch, Batch>;
  private readonly unseen: DataLoader<Batch, Batch>;

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
    this.unseen = new DataLoader(new Windows(tokens.subarray(held), { length, stride: length }), { batchSize: batch });
  }

  /** Trains until all steps are made. */
  train(callbacks: readonly Callback[], resume?: FitOptions<Batch>["resume"]): Promise<History> {
    const { steps, compiled } = this.options;
    const { model, forward, optimizer, schedule, scaler, averages: ema, loader } = this;
    const last: Callback = {
      onStepEnd({ step }, control) {
        control.stop = step === steps;
      },
    };
    return fit(model, {
      ...{ data: loader as Iterable<Batch>, forward, optimizer, schedule, scaler, ema, resume },
      epochs: Math.ceil(steps / loader.length),
      compile: compiled,
      callbacks: [last, ...callbacks],
    });
  }

  private readonly forward = ([input, target]: Batch): Tensor =>
    crossEntropy(this.model.forward(input).to("f32"), target);

  /** The mean loss on unseen text, of the averaged weights. */
  async evaluate(): Promise<number> {
    const { model, forward, unseen } = this;
    const measure = () => evaluate(model, { data: unseen as Iterable<Batch>, forward });
    return (await this.averages.averaged(measure)).loss!;
  }

  dispose(): void {
    this.optimizer.dispose();
    this.scaler.dispose();
    this.averages.dispose();
    for (const parameter of this.model.parameters()) parameter.dispose();
  }
}
