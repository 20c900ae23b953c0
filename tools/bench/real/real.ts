/** `--only real`: models of the size that users train, each contender in a process of its own: a step, the first one, the start, the memory. */
import { fileURLToPath } from "node:url";
import type { Benchmark, Contender, Session } from "../contender";
import { openProcess } from "../process-session";
import { openJax, openTorch } from "../python/process";
import type { RealModel } from "./task";
import { realTasks } from "./tasks";

interface RealWork {
  readonly model: RealModel;
}

/** Orders of summation differ, and what AdamW makes of near 0 gradients. */
const TOLERANCE = 2e-3;
const PROGRAM = fileURLToPath(new URL("./session.ts", import.meta.url));

const ours = (device: string, way: "eager" | "compiled"): Contender<RealWork> => ({
  name: `opt ${device}${way === "compiled" ? " compiled" : ""}`,
  tolerance: TOLERANCE,
  open: (work) => openProcess(process.execPath, [...process.execArgv, PROGRAM, device, way], work),
});

const torch = (variant: "eager" | "torch.compile"): Contender<RealWork> => ({
  name: `PyTorch ${variant}`,
  tolerance: TOLERANCE,
  open: (work) => openTorch("real_torch.py", { ...work, variant }),
});

const jax: Contender<RealWork> = {
  name: "JAX jit",
  tolerance: TOLERANCE,
  /** It has no modules: names and shapes of parameters are ours. */
  open({ model }): Promise<Session | string> {
    const parameters = realTasks[model]().model.namedParameters();
    return openJax("real_jax.py", { model, parameters: [...parameters].map(([name, { shape }]) => [name, shape]) });
  },
};

const TITLES: Readonly<Record<RealModel, readonly [title: string, unit: string, perStep: number]>> = {
  resnet: ["ResNet-18 for CIFAR, 64 images of 32 x 32", "images", 64],
  gpt: ["GPT, 6 blocks of width 384, 8 texts of 256", "tokens", 2048],
  lstm: ["LSTM language model, 2 layers of 650, 10,000 words, 20 texts of 35", "words", 700],
  unet: ["U-Net of a DDPM, width 64, 16 images of 32 x 32", "images", 16],
  dlrm: ["DLRM, 26 sparse tables of 20,000 x 16, 2,048 samples", "samples", 2048],
  pinn: ["PINN of Burgers' equation, 4 layers of 64, second derivatives at 4,096 places", "places", 4096],
};

export function realTraining(devices: readonly string[]): Benchmark<RealWork>[] {
  const own = devices.filter((name) => name !== "js").flatMap((name) => [ours(name, "eager"), ours(name, "compiled")]);
  const contenders = [...own, torch("eager"), torch("torch.compile"), jax];
  return (Object.keys(TITLES) as RealModel[]).map((model) => {
    const [title, unit, perStep] = TITLES[model];
    const rate = { unit: `${unit}/s`, perStep };
    return { title: `Real sizes: ${title}`, words: ["real", model], work: { model }, contenders, rate };
  });
}
