/** Epochs of MNIST training as `npm start` runs them, with the same first weights and order of images everywhere. The first losses are compared. */
import { HIDDEN, LEARNING_RATE, mnistFolder } from "@opt-e2e/mnist";
import type { Benchmark } from "./benchmark";
import type { Contender } from "./contender";
import { type MnistWork, optMnist } from "./mnist-opt";
import { openJax, openTorch } from "./python/process";
import { missingVariant, type TorchVariant } from "./python/torch-steps";

const BATCH = 128;
const STEPS_PER_EPOCH = Math.floor(60_000 / BATCH);
/** One that PyTorch has a fused implementation of, and one that it has not. */
const OPTIMIZERS: readonly MnistWork["optimizer"][] = ["AdamW", "NAdam"];

function torch(variant: TorchVariant): Contender<MnistWork> {
  return {
    name: `PyTorch ${variant}`,
    tolerance: 1e-4,
    open: async (work) =>
      missingVariant(variant, work.optimizer) ??
      openTorch("torch_mnist.py", { ...work, variant, folder: mnistFolder() }),
  };
}

const jax: Contender<MnistWork> = {
  name: "JAX jit",
  tolerance: 1e-4,
  open: async (work) =>
    work.optimizer === "AdamW"
      ? openJax("jax_mnist.py", { ...work, folder: mnistFolder() })
      : `optax's ${work.optimizer} computes something else`,
};

export function mnistEpochs(devices: readonly string[]): Benchmark<MnistWork>[] {
  const ours = devices.flatMap((name) => [optMnist(name, false), optMnist(name, true)]);
  const contenders = [...ours, torch("fused"), torch("foreach"), torch("single"), torch("torch.compile"), jax];
  return OPTIMIZERS.map((optimizer) => ({
    title: `MNIST, 784-${HIDDEN}-10, batches of ${BATCH}, ${optimizer}`,
    words: ["mnist", optimizer],
    work: { optimizer, hidden: HIDDEN, batch: BATCH, lr: LEARNING_RATE },
    contenders,
    stepsPerRound: STEPS_PER_EPOCH,
    rate: { unit: "images/s", perStep: BATCH },
  }));
}
