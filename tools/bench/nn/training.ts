/** Training steps of whole models: forward, backward and the optimizer, with the same weights and batches everywhere. The first losses are compared. */
import type { Benchmark } from "../benchmark";
import type { Contender } from "../contender";
import { openJax, openTorch } from "../python/process";
import { missingVariant, type TorchVariant } from "../python/torch-steps";
import { optTraining, TOLERANCE, type TrainingWork } from "./training-opt";

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
