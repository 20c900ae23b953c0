/** Training steps of whole models: forward, backward and AdamW, with the same weights and batches everywhere. The first losses are compared. */
import type { Benchmark } from "../benchmark";
import type { Contender } from "../contender";
import { openJax, openTorch } from "../python/process";
import type { TorchVariant } from "../python/torch-steps";
import { optTraining, TOLERANCE, type TrainingWork } from "./training-opt";

const torch = (variant: TorchVariant): Contender<TrainingWork> => ({
  name: `PyTorch ${variant}`,
  tolerance: TOLERANCE,
  open: (work) => openTorch("torch_training.py", { ...work, variant }),
});

const jax: Contender<TrainingWork> = {
  name: "JAX jit",
  tolerance: TOLERANCE,
  open: (work) => openJax("jax_training.py", work),
};

const TITLES: Readonly<Record<TrainingWork["model"], string>> = {
  cnn: "CNN on 28 x 28, convolutions 1-16-32 of 3 x 3, two pools, linear 1568-10",
  gpt: "GPT, 2 blocks of width 64, 4 heads, 48 of 64 tokens",
};

export function modelTraining(devices: readonly string[]): Benchmark<TrainingWork>[] {
  const ours = devices.flatMap((name) => [optTraining(name, false), optTraining(name, true)]);
  const contenders = [...ours, torch("fused"), torch("foreach"), torch("single"), torch("torch.compile"), jax];
  return (
    [
      ["cnn", 64, "images"],
      ["gpt", 16, "sequences"],
    ] as const
  ).map(([model, batch, unit]) => ({
    title: `Training: ${TITLES[model]}, batches of ${batch}, AdamW`,
    words: ["training", model],
    work: { model, batch, lr: 1e-3 },
    contenders,
    rate: { unit: `${unit}/s`, perStep: batch },
  }));
}
