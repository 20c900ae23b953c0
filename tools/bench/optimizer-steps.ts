/** Optimizer steps of Opt beside the memory limit, a plain loop, TF.js, jax-js and PyTorch. */
import { availableParallelism } from "node:os";
import type { Benchmark } from "./benchmark";
import type { Contender } from "./contender";
import { jaxJs, optaxInJaxJs, optInJaxJs } from "./hosts/jax-js";
import { optInTfjs, tfjs } from "./hosts/tfjs";
import { memoryLimit } from "./limits/memory-limit";
import { nativeLoop } from "./limits/native-loop";
import { typedArrayLoop } from "./limits/typed-array-loop";
import { optOneThread, optProcess } from "./opt-process";
import type { OptimizerName, OptimizerWork } from "./optimizer-work";
import { torch } from "./python/torch-steps";

const OPTIMIZERS: readonly OptimizerName[] = [
  ...(["AdamW", "AMSGrad", "NAdam", "SGD", "RMSprop", "Adamax", "RAdam"] as const),
  ...(["Adagrad", "Adadelta", "ASGD", "Rprop", "Lion", "Adafactor"] as const),
];
const SHAPES: readonly Omit<OptimizerWork, "optimizer">[] = [
  { tensors: 1, size: 65_536 },
  { tensors: 1, size: 1_048_576 },
  { tensors: 1, size: 33_554_432 },
  { tensors: 1000, size: 1000 },
];
/** Adafactor is for these. */
const MATRICES: typeof SHAPES = [
  { tensors: 1, size: 65_536, rows: 256 },
  { tensors: 1, size: 1_048_576, rows: 1024 },
  { tensors: 1, size: 33_554_432, rows: 4096 },
  { tensors: 1000, size: 1000, rows: 25 },
];

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
    typedArrayLoop,
    tfjs,
    ...["wasm", "cpu"].filter((name) => devices.includes(name)).map(optInTfjs),
    jaxJs("wasm"),
    optaxInJaxJs("wasm"),
    optInJaxJs("wasm"),
    optInJaxJs("wasm", "update"),
    torch("fused"),
    torch("foreach"),
    torch("single"),
  ];
  return OPTIMIZERS.flatMap((optimizer) =>
    (optimizer === "Adafactor" ? MATRICES : SHAPES).map(({ tensors, size, rows }) => {
      const elements = (tensors * size).toLocaleString("en-US");
      return {
        title: `${optimizer}, ${tensors === 1 ? elements : `${tensors} tensors x ${size}`} parameters`,
        words: ["optimizers", optimizer, String(size), `${tensors}x${size}`],
        work: { optimizer, tensors, size, ...(rows !== undefined && { rows }) },
        contenders,
      };
    }),
  );
}
