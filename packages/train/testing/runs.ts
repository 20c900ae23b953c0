/** Small runs for tests: models, data, and every bit of what they train. */
import {
  type BaseOptions,
  ExponentialMovingAverage,
  Generator,
  GradScaler,
  type Group,
  manualSeed,
  type Tensor,
  type Wrappable,
} from "@opt/core";
import { LinearLR } from "@opt/core/schedules";
import { DataLoader, TensorDataset } from "@opt/data";
import { Conv2d, crossEntropy, Dropout, Flatten, Linear, MaxPool2d, type Module, ReLU, Sequential } from "@opt/nn";
import type { FitOptions } from "../src/fit/options";

export type Batch = [Tensor, Tensor];
export const ROWS = 44; // in batches of 16: 16, 16, 12

export function dataset(shape: number[], seed: number) {
  const generator = new Generator(seed);
  const size = shape.reduce((a, b) => a * b, 1);
  const data = Float32Array.from({ length: ROWS * size }, () => generator.nextFloat() - 0.5);
  const labels = Int32Array.from(
    { length: ROWS },
    (_, i) => (data[i * size]! > 0 ? 1 : 0) + (data[i * size + 1]! > 0 ? 1 : 0),
  );
  return new TensorDataset({ data, shape: [ROWS, ...shape] }, { data: labels, shape: [ROWS] });
}

const models: Record<string, { shape: number[]; make(generator: Generator): Module }> = {
  mlp: {
    shape: [6],
    make: (generator) =>
      new Sequential(new Linear(6, 12, { generator }), new ReLU(), new Dropout(0.2), new Linear(12, 3, { generator })),
  },
  cnn: {
    shape: [1, 8, 8],
    make: (generator) =>
      new Sequential(
        new Conv2d(1, 4, 3, { generator }),
        new ReLU(),
        new MaxPool2d(2),
        new Flatten(),
        new Linear(36, 3, { generator }),
      ),
  },
};

export interface Extras {
  clip?: number;
  accumulate?: number;
  scaler?: boolean;
  ema?: boolean;
}

export function begin(
  name: string,
  optimizerOf: (model: Module) => Wrappable<Group<BaseOptions>>,
  { scaler, ema }: Extras,
) {
  manualSeed(5);
  const { shape, make } = models[name]!;
  const model = make(new Generator(1));
  const optimizer = optimizerOf(model);
  const schedule = new LinearLR(optimizer, { startFactor: 1, endFactor: 0.1, totalIters: 6 });
  const loader = new DataLoader(dataset(shape, 2), { batchSize: 16, shuffle: true, generator: new Generator(3) });
  const average = ema ? new ExponentialMovingAverage(model.namedParameters(), { decay: 0.9 }) : undefined;
  return {
    model,
    optimizer,
    schedule,
    loader,
    ema: average,
    scaler: scaler ? new GradScaler({ initScale: 8 }) : undefined,
  };
}

export type Begun = ReturnType<typeof begin>;

/** Every bit of weights, optimizer state and averages. */
export async function words({ model, optimizer, ema }: Begun): Promise<string[]> {
  const states = Object.values(optimizer.stateDict().state).flatMap((state) => Object.values(state));
  const averages = Object.values(ema?.stateDict() ?? {});
  const all = [...model.parameters(), ...states, ...averages];
  return Promise.all(
    all.map(async (value) =>
      typeof value === "number" ? String(value) : Buffer.from(await value.bytes()).toString("hex"),
    ),
  );
}

export const optionsOf = ({ model: _, loader, ...begun }: Begun, { clip, accumulate }: Extras): FitOptions<Batch> => ({
  ...begun,
  data: loader as Iterable<Batch>,
  loss: crossEntropy,
  epochs: 2,
  accumulate,
  clip: clip === undefined ? undefined : { norm: clip },
  callbacks: [],
});
