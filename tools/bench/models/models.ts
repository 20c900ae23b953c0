/** `--only models`: a language model beside transformers: steps of training, and tokens that it writes. */
import { fileURLToPath } from "node:url";
import type { Benchmark, Contender } from "../contender";
import { openProcess } from "../process-session";
import { openTorch } from "../python/process";
import { BATCH, LENGTH, TOKENS, type Work } from "./work";

interface ModelWork {
  readonly kind: Work;
}

/** Of losses. Tokens are the same, or not. */
const TOLERANCE = 2e-3;
const PROGRAM = fileURLToPath(new URL("./session.ts", import.meta.url));

const ours = (device: string, way: "eager" | "compiled"): Contender<ModelWork> => ({
  name: `opt ${device}${way === "compiled" ? " compiled" : ""}`,
  tolerance: TOLERANCE,
  open: (work) => openProcess(process.execPath, [...process.execArgv, PROGRAM, device, way], work),
});

const torch = (variant: "eager" | "torch.compile"): Contender<ModelWork> => ({
  name: `PyTorch ${variant}, transformers`,
  tolerance: TOLERANCE,
  open: (work) => openTorch("models_torch.py", { ...work, variant }),
});

export function languageModels(devices: readonly string[]): Benchmark<ModelWork>[] {
  const own = devices.filter((name) => name !== "js").flatMap((name) => [ours(name, "eager"), ours(name, "compiled")]);
  const title = "Llama of 20 million numbers";
  return [
    {
      title: `${title}: training on ${BATCH} texts of ${LENGTH}`,
      ...{ words: ["models", "train"], work: { kind: "train" }, rate: { unit: "tokens/s", perStep: BATCH * LENGTH } },
      contenders: [...own, torch("eager"), torch("torch.compile")],
    },
    {
      title: `${title}: writing ${TOKENS} tokens`,
      ...{ words: ["models", "decode"], work: { kind: "decode" }, rate: { unit: "tokens/s", perStep: TOKENS } },
      contenders: [...own, torch("eager")],
    },
  ];
}
