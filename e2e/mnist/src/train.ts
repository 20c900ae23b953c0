/** One optimizer's run over the training images, measured on the test images after each epoch. */
import { compile, concat, Generator, noGrad, type Tensor, tidy } from "@opt/core";
import { LinearLR } from "@opt/core/schedules";
import { DataLoader, Subset } from "@opt/data";
import type { Batch, Digits, Mnist } from "./data";
import { digitNetwork } from "./model";
import { type OptimizerName, optimizers } from "./optimizers";
import { forward, trainingStep } from "./step";

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
export const LEARNING_RATE = 4e-3;
/** Steps between two reads of losses: in between the device may run ahead of the program. */
const READ_EVERY = 50;
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
  const schedule = new LinearLR(optimizer, { startFactor: 1, endFactor: 0.01, totalIters: steps });
  const loader = new DataLoader(data.training, { batchSize, shuffle: true, dropLast: true, generator });
  const step = trainingStep(model, optimizer);
  const right = compile(([images, labels]: Batch) => noGrad(() => forward(model, images).argmax(-1).eq(labels).sum()));
  const losses: number[] = [];
  const accuracies: number[] = [];
  let seconds = 0;

  for (let epoch = 0; epoch < epochs; epoch++) {
    const start = performance.now();
    let unread: Tensor[] = [];
    for (const batch of loader) {
      unread.push(step(batch));
      schedule.step();
      if (unread.length === READ_EVERY || losses.length + unread.length === (epoch + 1) * loader.length) {
        losses.push(...(await readAll(unread)));
        unread = [];
        onProgress?.(losses.length, losses.at(-1)!);
      }
    }
    seconds += (performance.now() - start) / 1000;
    accuracies.push(await accuracy(right, data.test));
  }
  const imagesPerSecond = (steps * batchSize) / seconds;
  for (const compiled of [step, right]) compiled.dispose();
  for (const parameter of model.parameters()) parameter.dispose();
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

/** The values of tensors of one element, in one read. */
export async function readAll(scalars: readonly Tensor[]): Promise<ArrayLike<number> & Iterable<number>> {
  const together = tidy(() => concat(scalars.map((scalar) => scalar.reshape([1]))));
  for (const scalar of scalars) scalar.dispose();
  const values = await together.data();
  together.dispose();
  return values;
}

/** Share of the digits that are named rightly; `right` counts them in a batch. */
async function accuracy(right: (batch: Batch) => Tensor, digits: Digits): Promise<number> {
  const counts: Tensor[] = [];
  for (const batch of new DataLoader(digits, { batchSize: TEST_BATCH })) counts.push(right(batch));
  return [...(await readAll(counts))].reduce((a, b) => a + b, 0) / digits.length;
}
