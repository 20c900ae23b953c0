/** Steps of optimizers of whole matrices, beside their products alone and, where it has them, PyTorch's. */
import type { Benchmark, Contender } from "./contender";
import { optProcess } from "./opt-process";
import { MATRIX_OPTIMIZERS, type OptimizerWork } from "./optimizer-work";
import { torch } from "./python/process";

const SIDES = [256, 1024];

/** bfloat16 rounds differently where sums have another order: parameters differ by so much after three steps. */
const torchsMuon: Contender<OptimizerWork> = { ...torch("single"), tolerance: 1e-3 };

export function matrixSteps(devices: readonly string[]): Benchmark<OptimizerWork>[] {
  const ours = devices
    .filter((device) => device === "cpu")
    .flatMap((device) => [optProcess(device), optProcess(device, "products")]);
  return MATRIX_OPTIMIZERS.flatMap((optimizer) =>
    SIDES.map((side) => ({
      title: `${optimizer}, 4 matrices of ${side} x ${side}`,
      words: ["matrices", optimizer, String(side)],
      work: { optimizer, tensors: 4, size: side * side, rows: side, isMixed: true },
      contenders: optimizer === "Muon" ? [...ours, torchsMuon] : ours,
    })),
  );
}
