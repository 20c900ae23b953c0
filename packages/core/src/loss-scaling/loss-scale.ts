/** Grows and shrinks a loss scale on its device. */
import { defineRule } from "../rule/rule";
import { abs, add, less as below, where as choose, fma, mul } from "../rule/symbols";
import type { Tensor } from "../tensor/tensor";

/** On tensors of one element. `growthLow` and `backoffLow` are what float32 drops of a factor: PyTorch has it in float64. */
export const UPDATE = /* @__PURE__ */ defineRule({
  name: "lossScale",
  buffers: ["scale", "tracker", "found"],
  scalars: ["growth", "growthLow", "backoff", "backoffLow", "interval"],
  update({ scale, tracker, found }, { growth, growthLow, backoff, backoffLow, interval }) {
    const grown = fma(scale, growth, mul(scale, growthLow));
    const next = add(tracker, 1);
    const grows = (then: typeof scale, otherwise: typeof scale) =>
      choose(below(next, interval), otherwise, choose(below(interval, next), otherwise, then));
    const larger = choose(below(abs(grown), Number.POSITIVE_INFINITY), grown, scale);
    const overflowed = (then: typeof scale, otherwise: typeof scale) => choose(below(0, found), then, otherwise);
    return {
      scale: overflowed(fma(scale, backoff, mul(scale, backoffLow)), grows(larger, scale)),
      tracker: overflowed(mul(tracker, 0), grows(mul(tracker, 0), next)),
    };
  },
});

/** Overwrites the scale and the steps since it changed, by whether this step overflowed (`found`). All are tensors of one element. */
export function updateScale(
  { factor, tracker, found }: Readonly<Record<"factor" | "tracker" | "found", Tensor>>,
  growthFactor: number,
  backoffFactor: number,
  growthInterval: number,
): void {
  const { device } = factor;
  device.launch({
    kind: "rule",
    kernel: device.kernel({ kind: "rule", rule: UPDATE, dtype: "f32" }),
    tensors: [[factor, tracker, found].map((x) => x.memorySlice())],
    scalars: [...inTwo(growthFactor), ...inTwo(backoffFactor), growthInterval],
  });
  for (const { storage } of [factor, tracker]) storage.overwritten();
}

/** A float32 number and what it lacks. */
function inTwo(factor: number): [number, number] {
  return [Math.fround(factor), factor - Math.fround(factor)];
}
