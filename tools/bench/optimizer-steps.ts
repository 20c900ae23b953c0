/** Optimizer steps of Opt beside the memory limit, C++ loops, TF.js, jax-js and PyTorch. */
import { availableParallelism } from "node:os";
import type { Benchmark, Contender } from "./contender";
import { jaxJs, optaxInJaxJs, optInJaxJs } from "./hosts/jax-js";
import { optInTfjs, tfjs } from "./hosts/tfjs";
import { memoryLimit } from "./limits/memory-limit";
import { nativeLoop } from "./limits/native-loop";
import { optOneThread, optProcess } from "./opt-process";
import { OPTIMIZER_NAMES, type OptimizerWork } from "./optimizer-work";
import { torch } from "./python/process";

/** With the rows of the matrices that Adafactor is for. */
const SHAPES = [
  { tensors: 1, size: 65_536, rows: 256 },
  { tensors: 1, size: 1_048_576, rows: 1024 },
  { tensors: 1, size: 33_554_432, rows: 4096 },
  { tensors: 1000, size: 1000, rows: 25 },
];

const torchs = [torch("fused"), torch("foreach"), torch("single")];

export function optimizerSteps(devices: readonly string[]): Benchmark<OptimizerWork>[] {
  const contenders: Contender<OptimizerWork>[] = [
    memoryLimit,
    ...devices.map((device) => optProcess(device)),
    nativeLoop(128),
    nativeLoop(128, availableParallelism()),
    optOneThread("wasm1"),
    nativeLoop(512),
    nativeLoop(512, availableParallelism()),
    optOneThread("cpu1"),
    tfjs,
    ...["wasm", "cpu"].filter((name) => devices.includes(name)).map(optInTfjs),
    jaxJs("wasm"),
    optaxInJaxJs("wasm"),
    optInJaxJs("wasm"),
    optInJaxJs("wasm", "update"),
    ...torchs,
  ];
  return OPTIMIZER_NAMES.flatMap((optimizer) =>
    SHAPES.map(({ tensors, size, rows }) => {
      const elements = (tensors * size).toLocaleString("en-US");
      return {
        title: `${optimizer}, ${tensors === 1 ? elements : `${tensors} tensors x ${size}`} parameters`,
        words: ["optimizers", optimizer, String(size), `${tensors}x${size}`],
        work: { optimizer, tensors, size, ...(optimizer === "Adafactor" && { rows }) },
        contenders,
      };
    }),
  );
}

/** What a step costs before it computes anything: AdamW on tensors of 16 elements, eager and compiled. */
export function smallSteps(devices: readonly string[]): Benchmark<OptimizerWork>[] {
  const ours = devices.flatMap((device) => [optProcess(device), optProcess(device, "compiled")]);
  const contenders = [...ours, tfjs, optInTfjs("wasm"), jaxJs("wasm"), ...torchs];
  return [1, 10, 100, 1000].map((tensors) => ({
    title: `AdamW, ${tensors} tensor${tensors === 1 ? "" : "s"} of 16`,
    words: ["small", "AdamW", `${tensors}x16`],
    work: { optimizer: "AdamW", tensors, size: 16 },
    contenders,
  }));
}
