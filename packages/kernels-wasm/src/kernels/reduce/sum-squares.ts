/** Sum of squares of each tensor of a list. */
import { byteSize, type Spec, type StoredDType } from "@opt/core/backend";
import { type FunctionBuilder, f64x2, type Local, ModuleBuilder, type Value } from "../../assembler";
import type { KernelSource, Target } from "../../kernel";
import { type Float, floatOf, widen } from "../float";
import { walkBlocks } from "../row";
import { emitSegments, runSegments } from "./segments";
import { sumsOfRow } from "./sum";

function emit({ dtype, stored, nonFinite }: Spec<"sumSquares">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const module = new ModuleBuilder(target);
  const foldOf = module.function({ parameters: ["i32", "i32"], result: "f64" }, (f, address, length) => {
    if (nonFinite) return differences(f, float, address, length, stored);
    const squares = (pairs: readonly Local<"v128">[]) => pairs.map((x) => f64x2.mul(x, x));
    return sumsOfRow(f, float, [address], length, 1, (step, at) => [squares(step.pairs(at))], stored)[0]!;
  });
  emitSegments(module, float, foldOf);
  return module;
}

/** The sum of the differences of elements from themselves: 0, or NaN. It has no order. */
function differences(
  f: FunctionBuilder,
  float: Float,
  address: Local<"i32">,
  length: Local<"i32">,
  stored?: StoredDType,
): Value<"f64"> {
  const { vector, scalar, lanes } = float;
  const sums = Array.from({ length: 4 }, () => f.local("v128"));
  walkBlocks(
    f,
    float,
    [address],
    length,
    sums.length,
    (steps, at) => {
      for (const [k, step] of steps.entries()) {
        const x = step.load(at);
        f.set(sums[k]!, vector.add(sums[k]!, vector.sub(x, x)));
      }
    },
    { stored },
  );
  const all = f.local("v128", sums.reduce<Value<"v128">>(vector.add, sums.pop()!));
  return widen(float, Array.from({ length: lanes }, (_, lane) => vector.extractLane(all, lane)).reduce(scalar.add));
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
