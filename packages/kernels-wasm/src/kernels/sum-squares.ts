/** Sum of squares of each tensor of a list. */
import { byteSize, type Spec } from "@opt/core/backend";
import { f64x2, ModuleBuilder } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { emitFold } from "./block";
import { floatOf } from "./float";
import { emitSegments, runSegments } from "./segments";
import { emitSum } from "./sum";

function emit({ dtype, stored, nonFinite }: Spec<"sumSquares">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const module = new ModuleBuilder(target);
  const foldOf = nonFinite
    ? emitFold(module, float, "nonFinite", stored)
    : emitSum(module, dtype, (x) => f64x2.mul(x, x), stored);
  emitSegments(module, float, foldOf);
  return module;
}

export const sumSquares: KernelSource<"sumSquares"> = {
  emit,
  launch({ kernel, inputs, output }, execution) {
    if (inputs.length === 0) return;
    const { dtype, stored = dtype } = kernel.spec;
    const ranges = inputs.map((input) => [execution.address(input), input.length] as const);
    runSegments(execution, ranges, byteSize(stored), output, 1);
  },
};
