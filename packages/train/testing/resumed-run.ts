/** A run of `fit` on a rank that stops after a step, or goes on from there. */
import { AdamW } from "@opt/adam-amsgrad";
import { Generator, type Tensor, tensor } from "@opt/core";
import { DataLoader } from "@opt/data";
import { crossEntropy, Linear } from "@opt/nn";
import { type Communicator, DistributedSampler } from "@opt/parallel";
import { checkpoints } from "../src/callbacks/checkpoints";
import { fit } from "../src/fit";

const SAMPLES = 60;

export interface ResumedRun {
  readonly folder: string;
  readonly batchSize: number;
  /** It stops after this step. */
  readonly last?: number;
  /** What divides samples over ranks. */
  readonly by: "order" | "sampler";
}

/** Returns the samples of each step, the weights at the end, and the losses of epochs. */
export async function resumedRun(communicator: Communicator, { folder, batchSize, last, by }: ResumedRun) {
  const features = Array.from({ length: SAMPLES }, (_, i) =>
    Array.from({ length: 4 }, (_, k) => Math.sin(7 * i + 3 * k)),
  );
  const samples = features.map((x, i) => [tensor(x), tensor(i, { dtype: "i32" })] as [Tensor, Tensor]);
  const model = new Linear(4, 3, { generator: new Generator(3) });
  const { rank, size } = communicator;
  const order =
    by === "sampler"
      ? { sampler: new DistributedSampler(SAMPLES, { rank, size, seed: 5 }) }
      : { shuffle: true, generator: new Generator(5) };
  const steps: number[][] = [];
  const classOf = (numbers: Tensor) =>
    tensor(
      Int32Array.from(numbers.dataSync(), (i) => i % 3),
      { dtype: "i32" },
    );
  const interruption = new AbortController();
  const { epochs } = await fit(model, {
    data: new DataLoader(samples, { batchSize, ...order }),
    communicator,
    epochs: 2,
    optimizer: new AdamW(model.namedParameters(), { lr: 0.05 }),
    forward: ([x, number]: [Tensor, Tensor]) => {
      steps.push([...number.dataSync()]);
      return crossEntropy(model.forward(x), classOf(number));
    },
    compile: false,
    resume: true,
    signal: interruption.signal,
    callbacks: [
      checkpoints(folder, { every: 1 }),
      {
        onStepEnd({ step }) {
          if (step === last) interruption.abort();
        },
      },
    ],
  });
  return { steps, weights: [...model.weight.dataSync()], losses: epochs.map(({ loss }) => loss) };
}
