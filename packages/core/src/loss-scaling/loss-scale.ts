/** A loss scale, which grows and shrinks where the host can read it. */
import { full } from "../create";
import type { Device } from "../device/device";
import { deviceOf } from "../device/registry";
import { keep, tidy } from "../device/scope";
import { untraced } from "../device/tracer";
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

/** How a scale grows and shrinks. */
export interface Growth {
  readonly growthFactor: number;
  readonly backoffFactor: number;
  readonly growthInterval: number;
}

/** A scale and the steps since it changed, which a host can read at once. Other devices have a copy of the scale. */
export class LossScale {
  /** On the device of the losses. */
  readonly factor: Tensor;
  readonly #scale: Tensor;
  readonly #tracker: Tensor;

  constructor(device: Device, scale: number, tracker: number) {
    const home = device.backend.readSync === undefined ? deviceOf("GradScaler", "js") : device;
    const made = (value: number, on: Device) => keep(full([], value, { device: on }));
    if (home === device) {
      this.#scale = this.factor = made(scale, device);
      this.#tracker = made(tracker, device);
    } else {
      // The tensors of the host are no part of what a compiled function runs.
      [this.#scale, this.#tracker] = untraced(() => [made(scale, home), made(tracker, home)]);
      this.factor = made(scale, device);
    }
  }

  /** The device that was asked for does not answer at once: the host updates the scale, and is told what it found. */
  get isOnHost(): boolean {
    return this.#scale !== this.factor;
  }

  /** By whether this step overflowed: `found` is above 0, on the device of the scale. */
  update(found: Tensor, { growthFactor, backoffFactor, growthInterval }: Growth): void {
    const { device } = this.#scale;
    device.launch({
      kind: "rule",
      kernel: device.kernel({ kind: "rule", rule: UPDATE, dtype: "f32" }),
      tensors: [[this.#scale, this.#tracker, found].map((x) => x.memorySlice())],
      scalars: [...inTwo(growthFactor), ...inTwo(backoffFactor), growthInterval],
    });
    for (const { storage } of [this.#scale, this.#tracker]) storage.overwritten();
  }

  /** The same by the host's knowledge. */
  updateOnHost(overflowed: boolean, growth: Growth): void {
    const before = this.read().scale;
    tidy(() => this.update(full([], Number(overflowed), { device: this.#scale.device }), growth));
    const { scale } = this.read();
    if (scale !== before) this.factor.set(scale);
  }

  /** Another scale: a number, or a tensor of one element. */
  replace(scale: number | Tensor): void {
    this.#scale.set(scale);
    if (this.isOnHost) this.factor.set(scale);
  }

  load(scale: number, tracker: number): void {
    this.replace(scale);
    this.#tracker.set(tracker);
  }

  read(): { scale: number; tracker: number } {
    return { scale: this.#scale.dataSync()[0]!, tracker: this.#tracker.dataSync()[0]! };
  }

  dispose(): void {
    for (const x of [this.factor, this.#scale, this.#tracker]) x.dispose();
  }
}

/** A float32 number and what it lacks. */
function inTwo(factor: number): [number, number] {
  return [Math.fround(factor), factor - Math.fround(factor)];
}
