/** One optimizer's run over the training images, measured on the test images after each epoch. */
import { Generator } from "@opt/core";
import { LinearLR } from "@opt/core/schedules";
import { DataLoader, Subset } from "@opt/data";
import { crossEntropy } from "@opt/nn";
import { accuracy, fit } from "@opt/train";
import type { Batch, Digits, Mnist } from "./data";
import { digitNetwork } from "./model";
import { type OptimizerName, optimizers } from "./optimizers";
import { forward } from "./step";

export interface TrainingOptions {
  readonly optimizer: OptimizerName;
  readonly epochs: number;
  readonly batchSize: number;
  /** Of the first weights and of the order of the images: the same for every optimizer. */
  readonly seed: number;
  /** Called now and then with the steps done and the last loss read. */
  readonly onProgress?: (step: number, loss: number) => void;
}

export interface TrainingResult {
  readonly optimizer: OptimizerName;
  /** The loss of every step. */
  readonly losses: readonly number[];
  /** Share of the test images that are named rightly, after each epoch. */
  readonly accuracies: readonly number[];
  /** Of training alone, until the device has finished. */
  readonly seconds: number;
  readonly imagesPerSecond: number;
}

export const HIDDEN = 256;
/** The rate of the first step; it falls in a line to nearly nothing. */
const LEARNING_RATE = 4e-3;
/** Steps between two calls of `onProgress`. */
const TELL_EVERY = 50;
const TEST_BATCH = 1000;
const WARM_UP_STEPS = 60;

export function stepsOf({ training }: Mnist, { epochs, batchSize }: TrainingOptions): number {
  return epochs * Math.floor(training.length / batchSize);
}

export async function train(data: Mnist, options: TrainingOptions): Promise<TrainingResult> {
  const { batchSize, epochs, seed, onProgress } = options;
  const generator = new Generator(seed);
  const model = digitNetwork(HIDDEN, generator);
  const optimizer = optimizers[options.optimizer](model.namedParameters(), LEARNING_RATE);
  const steps = stepsOf(data, options);
  const { epochs: records, losses } = await fit(model, {
    data: new DataLoader(data.training, { batchSize, shuffle: true, dropLast: true, generator }),
    validation: new DataLoader(data.test, { batchSize: TEST_BATCH }),
    forward([images, target]) {
      const output = forward(model, images);
      return { loss: crossEntropy(output, target), output, target };
    },
    optimizer,
    schedule: new LinearLR(optimizer, { startFactor: 1, endFactor: 0.01, totalIters: steps }),
    epochs,
    metrics: [accuracy()],
    callbacks: [
      {
        onStepEnd({ step, epochStep, stepsPerEpoch, loss }) {
          if (epochStep % TELL_EVERY === 0 || epochStep === stepsPerEpoch) onProgress?.(step, loss);
        },
      },
    ],
  });
  for (const parameter of model.parameters()) parameter.dispose();
  const seconds = records.reduce((sum, record) => sum + record.seconds, 0);
  const accuracies = records.map((record) => record.val_accuracy!);
  const imagesPerSecond = (steps * batchSize) / seconds;
  return { optimizer: options.optimizer, losses, accuracies, seconds, imagesPerSecond };
}

/** A few steps whose time nobody takes: engines compile what runs often, and threads and kernels start at their first use. */
export async function warmUp({ training, test }: Mnist, options: TrainingOptions): Promise<void> {
  const some = { training: firstOf(training, WARM_UP_STEPS * options.batchSize), test: firstOf(test, TEST_BATCH) };
  await train(some, { ...options, epochs: 1 });
}

function firstOf(digits: Digits, count: number): Subset<Batch, Batch> {
  return new Subset<Batch, Batch>(
    digits,
    Array.from({ length: Math.min(count, digits.length) }, (_, i) => i),
  );
}
