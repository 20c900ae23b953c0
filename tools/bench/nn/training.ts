/** Training steps of whole models: forward, backward and the optimizer, with the same weights and batches everywhere. The first losses are compared. */
import { compile, init, type Tensor, tensor, tidy } from "@opt/core";
import { Conv2d, crossEntropy, Flatten, Linear, MaxPool2d, type Module, ReLU, Sequential } from "@opt/nn";
import { digitNetwork, HIDDEN, optimizers, PIXELS } from "@opt-e2e/mnist";
import { Gpt } from "@opt-e2e/tiny-gpt";
import { type Benchmark, type Contender, timed } from "../contender";
import { missingVariant, openJax, openTorch, type TorchVariant } from "../python/process";
import { setFirstWeights } from "./first-weights";
import { integers, values } from "./values";

interface TrainingWork {
  readonly model: "mlp" | "cnn" | "gpt";
  readonly optimizer: "AdamW" | "NAdam";
  readonly batch: number;
  readonly lr: number;
}

/** Orders of summation differ. */
const TOLERANCE = 1e-4;

interface Task {
  readonly model: Module & { forward(x: Tensor): Tensor };
  /** The input and the labels of a batch. */
  batch(index: number): [Tensor, Tensor];
}

const BATCHES = 8;
const [TOKENS, LENGTH] = [64, 48];

const TASKS: Readonly<Record<TrainingWork["model"], (batch: number) => Task>> = {
  mlp: (batch) => ({
    model: digitNetwork(HIDDEN),
    batch: (index) => [
      tensor(values(batch * PIXELS, 104_729 + 2 * index), { shape: [batch, PIXELS] }),
      tensor(integers(batch, 1299 + 2 * index, 10), { shape: [batch] }),
    ],
  }),
  cnn: (batch) => ({
    model: new Sequential(
      new Conv2d(1, 16, 3, { padding: 1 }),
      new ReLU(),
      new MaxPool2d(2),
      new Conv2d(16, 32, 3, { padding: 1 }),
      new ReLU(),
      new MaxPool2d(2),
      new Flatten(),
      new Linear(32 * 7 * 7, 10),
    ),
    batch: (index) => [
      tensor(values(batch * 28 * 28, 104_729 + 2 * index), { shape: [batch, 1, 28, 28] }),
      tensor(integers(batch, 1299 + 2 * index, 10), { shape: [batch] }),
    ],
  }),
  gpt: (batch) => ({
    model: new Gpt({ tokens: TOKENS, width: 64, length: LENGTH, blocks: 2, heads: 4 }),
    batch: (index) => [
      tensor(integers(batch * LENGTH, 104_729 + 2 * index, TOKENS), { shape: [batch, LENGTH] }),
      tensor(integers(batch * LENGTH, 1299 + 2 * index, TOKENS), { shape: [batch, LENGTH] }),
    ],
  }),
};

/** Eager or compiled. */
function optTraining(name: string, isCompiled: boolean): Contender<TrainingWork> {
  return {
    name: `opt ${name}${isCompiled ? " compiled" : ""}`,
    tolerance: TOLERANCE,
    async open({ model: kind, optimizer: optimizerName, batch, lr }) {
      if (name === "js") return "too slow to be of interest";
      const device = await init(name).catch((error: Error) => error.message);
      if (typeof device === "string") return device;
      const { model, batch: makeBatch } = TASKS[kind](batch);
      setFirstWeights(model);
      const optimizer = optimizers[optimizerName](model.namedParameters(), lr);
      const batches = Array.from({ length: BATCHES }, (_, index) => makeBatch(index));
      const losses: number[] = [];
      let done = 0;
      const train = (input: Tensor, labels: Tensor) => {
        const loss = crossEntropy(model.forward(input), labels);
        loss.backward();
        optimizer.step();
        optimizer.zeroGrad();
        return loss.detach();
      };
      const compiled = compile(train);
      const next = isCompiled ? compiled : (input: Tensor, labels: Tensor) => tidy(() => train(input, labels));
      const step = async () => {
        const loss = next(...batches[done % BATCHES]!);
        losses.push(await loss.item());
        loss.dispose();
        done++;
      };
      return {
        async run(steps) {
          await init(name);
          return timed(steps, step);
        },
        result: async (count) => losses.slice(0, count),
        async close() {
          compiled.dispose();
          optimizer.dispose();
          for (const made of [...batches.flat(), ...model.parameters()]) made.dispose();
        },
      };
    },
  };
}

const torch = (variant: TorchVariant): Contender<TrainingWork> => ({
  name: `PyTorch ${variant}`,
  tolerance: TOLERANCE,
  open: async (work) => missingVariant(variant, work.optimizer) ?? openTorch("torch_training.py", { ...work, variant }),
});

const jax: Contender<TrainingWork> = {
  name: "JAX jit",
  tolerance: TOLERANCE,
  open: async (work) =>
    work.optimizer === "AdamW" ? openJax("jax_training.py", work) : `optax's ${work.optimizer} computes something else`,
};

const TITLES: Readonly<Record<TrainingWork["model"], string>> = {
  mlp: "MLP 784-256-10, as for MNIST",
  cnn: "CNN on 28 x 28, convolutions 1-16-32 of 3 x 3, two pools, linear 1568-10",
  gpt: "GPT, 2 blocks of width 64, 4 heads, 48 of 64 tokens",
};

export function modelTraining(devices: readonly string[]): Benchmark<TrainingWork>[] {
  const ours = devices.flatMap((name) => [optTraining(name, false), optTraining(name, true)]);
  const contenders = [...ours, torch("fused"), torch("foreach"), torch("single"), torch("torch.compile"), jax];
  return (
    [
      ["mlp", "AdamW", 128, "images"],
      ["mlp", "NAdam", 128, "images"],
      ["cnn", "AdamW", 64, "images"],
      ["gpt", "AdamW", 16, "sequences"],
    ] as const
  ).map(([model, optimizer, batch, unit]) => ({
    title: `Training: ${TITLES[model]}, batches of ${batch}, ${optimizer}`,
    words: ["training", model, optimizer, ...(model === "mlp" ? ["mnist"] : [])],
    work: { model, optimizer, batch, lr: 1e-3 },
    contenders,
    rate: { unit: `${unit}/s`, perStep: batch },
  }));
}
