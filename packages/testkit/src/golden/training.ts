/** Two small models trained by PyTorch: first weights, data and the loss of every step. */
import { readGolden, readGoldenJson } from "./files";
import { type NamedArray, readSafetensors } from "./safetensors";

/** AMSGrad is `Adam(amsgrad=True)`. All have their default options. */
export type TrainedBy = "NAdam" | "Adam" | "AMSGrad" | "AdamW";

interface Training {
  /** First values under PyTorch's names and shapes: a Linear weight is [out, in]. */
  readonly parameters: ReadonlyMap<string, NamedArray>;
  /** Mean cross-entropy before each step. */
  readonly losses: Readonly<Record<TrainedBy, readonly number[]>>;
}

/** 784-32-10 with ReLU; step i takes training images batch * i and on, in file order, pixels / 255. */
export interface MnistTraining extends Training {
  readonly batch: number;
}

/** Two pre-norm blocks with causal attention; `tokens[i]` is step i's batch of sequences, targets shifted by one. */
export interface GptTraining extends Training {
  readonly clipGradNorm: number;
  readonly tokens: readonly (readonly (readonly number[])[])[];
}

export function trainingGolden(name: "mnist-mlp"): MnistTraining;
export function trainingGolden(name: "tiny-gpt"): GptTraining;
export function trainingGolden(name: "mnist-mlp" | "tiny-gpt"): MnistTraining | GptTraining {
  const parameters = readSafetensors(readGolden(`${name}.safetensors`));
  return { ...readGoldenJson<MnistTraining | GptTraining>(`${name}.json`), parameters };
}
