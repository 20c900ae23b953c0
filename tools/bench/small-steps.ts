/** What a step costs before it computes anything: AdamW on tensors of 16 elements, eager and compiled. */
import type { Benchmark } from "./benchmark";
import type { Contender } from "./contender";
import { jaxJs } from "./hosts/jax-js";
import { optInTfjs, tfjs } from "./hosts/tfjs";
import { optProcess } from "./opt-process";
import type { OptimizerWork } from "./optimizer-work";
import { torch } from "./python/torch-steps";

export function smallSteps(devices: readonly string[]): Benchmark<OptimizerWork>[] {
  const contenders: Contender<OptimizerWork>[] = [
    ...devices.flatMap((device) => [optProcess(device), optProcess(device, true)]),
    tfjs,
    ...devices.filter((device) => device === "wasm").map(optInTfjs),
    jaxJs("wasm"),
    torch("fused"),
    torch("foreach"),
    torch("single"),
  ];
  return [1, 10, 100, 1000].map((tensors) => ({
    title: `AdamW, ${tensors} tensor${tensors === 1 ? "" : "s"} of 16`,
    words: ["small", "AdamW", `${tensors}x16`],
    work: { optimizer: "AdamW", tensors, size: 16 },
    contenders,
  }));
}
