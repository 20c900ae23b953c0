/** Loss scaling: gradients of 16 bits that would vanish are computed of a larger loss, and steps that overflowed are skipped. */

import { tensor } from "../create";
import { activeRecorder, once } from "../device/recorder";
import { keep, tidy } from "../device/scope";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { less, select } from "../functions";
import { cast, elementwise } from "../ops";
import { checkTensor } from "../ops/check-tensor";
import { defineRule } from "../rule/rule";
import { abs, add, less as below, select as choose, fma, mul } from "../rule/symbols";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import type { Around, ClipOptions } from "./around";
import { checkOneDevice } from "./clip";
import { scaleInPlace, sumsOf } from "./norm";

export interface GradScalerOptions {
  /** The first factor of losses. Default 65536. */
  readonly initScale?: number;
  /** By which the factor grows after `growthInterval` steps without overflow, > 1. Default 2. */
  readonly growthFactor?: number;
  /** By which it shrinks at an overflow, < 1. Default 0.5. */
  readonly backoffFactor?: number;
  /** Default 2000. */
  readonly growthInterval?: number;
  /** false: losses and steps pass through. Default true. */
  readonly enabled?: boolean;
}

/** What is saved of a scaler, under PyTorch's keys; `{}` of one that is not enabled. */
export interface GradScalerState {
  readonly scale?: number;
  readonly growth_factor?: number;
  readonly backoff_factor?: number;
  readonly growth_interval?: number;
  readonly _growth_tracker?: number;
}

/** What a scaler asks of an optimizer. */
export interface Scalable {
  readonly groups: readonly { readonly params: readonly Tensor[]; readonly clip?: ClipOptions | null }[];
  step(): void;
  /** @internal */
  apply(around: Around): () => void;
}

/** Tensors of one element each: the last place of `growthLow` makes up for what float32 drops of a factor that PyTorch has in float64. */
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

interface Examined {
  stage: "unscaled" | "stepped";
  /** 1 if a gradient was not finite, else 0. */
  readonly found: Tensor;
}

const where = "GradScaler";

/**
 * Scales losses up before backward, and skips steps whose gradients are not finite. Numbers and errors are those of torch.amp.GradScaler.
 * A skipped step counts nowhere, bias corrections included; in recorded steps too, where hooks run all the same.
 *
 * js, wasm and cpu wait for nothing. cuda waits in `step` for the gradients, as PyTorch does; where the host cannot wait (webgpu)
 * `step` and `update` return a promise, which the next `step` wants to have been awaited.
 *
 * @throws OptError BAD_ARGUMENT for options out of range; BAD_STATE for calls out of order; DEVICE_MISMATCH for losses of several devices
 * @example
 * const scaler = new GradScaler();
 * scaler.scale(crossEntropy(model.forward(x), y)).backward();
 * await scaler.step(optimizer);
 * await scaler.update();
 */
export class GradScaler {
  private readonly enabled: boolean;
  private growthFactor: number;
  private backoffFactor: number;
  private growthInterval: number;
  /** On the device of the first loss; until then what it will be made of. */
  private factor: Tensor | null = null;
  private tracker: Tensor | null = null;
  private initial: { scale: number; tracker: number };
  private readonly examined = new Map<Scalable, Examined>();
  /** What the host is still reading. */
  private reading: Promise<void> | null = null;

  constructor(options: GradScalerOptions = {}) {
    checkOptions(where, options, {
      initScale: "number",
      growthFactor: "number",
      backoffFactor: "number",
      growthInterval: "number",
      enabled: "boolean",
    });
    const { initScale = 65536, growthFactor = 2, backoffFactor = 0.5, growthInterval = 2000 } = options;
    checkNumber("initScale", initScale, initScale > 0, "a finite number > 0");
    checkNumber("growthFactor", growthFactor, growthFactor > 1, "a finite number > 1");
    checkNumber("backoffFactor", backoffFactor, backoffFactor > 0 && backoffFactor < 1, "a number between 0 and 1");
    checkNumber(
      "growthInterval",
      growthInterval,
      Number.isInteger(growthInterval) && growthInterval > 0,
      "a whole number > 0",
    );
    this.enabled = options.enabled ?? true;
    this.growthFactor = growthFactor;
    this.backoffFactor = backoffFactor;
    this.growthInterval = growthInterval;
    this.initial = { scale: initScale, tracker: 0 };
  }

  /** The loss times the factor, for `backward`. */
  scale(loss: Tensor): Tensor {
    checkTensor(`${where}.scale`, loss);
    if (!this.enabled) return loss;
    if (this.factor === null) {
      const on = { device: loss.device } as const;
      once(() => {
        this.factor = keep(tensor(this.initial.scale, on));
        this.tracker = keep(tensor(this.initial.tracker, on));
      });
    }
    return loss.mul(this.known("scale").factor);
  }

  /**
   * Divides the gradients of an optimizer's parameters by the factor, in place: to look at them or to clip them before `step`, which
   * does it by itself otherwise. @throws OptError BAD_STATE the second time since `update`
   */
  unscale(optimizer: Scalable): void {
    if (!this.enabled) return;
    const known = this.examined.get(optimizer);
    checkOrder(
      known === undefined,
      () => `unscale() came after ${known!.stage === "unscaled" ? "unscale" : "step"}().`,
    );
    noGrad(() => {
      const grads = gradientsOf(optimizer);
      this.examine(optimizer, grads);
      tidy(() => scaleInPlace(grads, this.inverse()));
    });
  }

  /** The optimizer's step on unscaled gradients, unless one is not finite. @throws OptError BAD_STATE the second time since `update`, or without gradients */
  step(optimizer: Scalable, closure?: () => unknown): Promise<void> | undefined {
    if (!this.enabled) {
      if (closure === undefined) optimizer.step();
      else (optimizer.step as (closure: () => unknown) => unknown)(closure);
      return undefined;
    }
    const problem = () => "a closure would find gradients of the scaled loss, got one.";
    check(closure === undefined, "UNSUPPORTED", `${where}.step`, problem, "Call backward before step(optimizer).");
    checkOrder(this.examined.get(optimizer)?.stage !== "stepped", () => "step() came after step().");
    checkOrder(this.reading === null, () => "the last step was not awaited.");
    // A norm is clipped after all gradients were unscaled.
    if (optimizer.groups.some(({ clip }) => clip?.norm !== undefined) && !this.examined.has(optimizer))
      this.unscale(optimizer);
    const isUnscaled = this.examined.has(optimizer);
    const examined = this.examined.get(optimizer) ?? noGrad(() => this.examine(optimizer, gradientsOf(optimizer)));
    const { found } = examined;
    examined.stage = "stepped";
    const canLook = found.device.backend.readSync !== undefined;
    // A recording keeps its memory when the tensor is gone.
    const { memory, byteOffset } = found.memorySlice();
    const look = () => found.device.backend.readSync!(memory, byteOffset, 4);
    const skipped = () => new Float32Array(once(look).slice().buffer)[0]! > 0;
    if (activeRecorder() === null && canLook) {
      if (!skipped()) this.apply(optimizer, isUnscaled, {});
      return undefined;
    }
    const uncount = this.apply(optimizer, isUnscaled, canLook ? { skip: found, skipped } : { skip: found });
    if (canLook) {
      if (skipped()) uncount();
      return undefined;
    }
    const isRecorded = activeRecorder() !== null;
    const message = () => "the host cannot look at gradients without waiting on this device, got a recorded step.";
    check(!isRecorded, "UNSUPPORTED", `${where}.step`, message, "Record forward and backward, and step outside.");
    this.reading = found.data().then(([value]) => {
      if (value! > 0) uncount();
      this.reading = null;
    });
    return this.reading;
  }

  /** The factor of the next losses, by what this iteration's steps met. A number or a tensor given takes its place. */
  update(newScale?: number | Tensor): Promise<void> | undefined {
    if (!this.enabled) return undefined;
    const { factor, tracker } = this.known("update");
    if (newScale === undefined) {
      checkOrder(this.examined.size > 0, () => "update() came before any step().");
      noGrad(() =>
        tidy(() => {
          const all = [...this.examined.values()].map(({ found }) => found);
          const found = all.slice(1).reduce((sum, each) => sum.add(each), all[0]!);
          const { device } = factor;
          device.launch({
            kind: "rule",
            kernel: device.kernel({ kind: "rule", rule: UPDATE, dtype: "f32" }),
            tensors: [[factor, tracker, found].map((x) => x.memorySlice())],
            scalars: [...inTwo(this.growthFactor), ...inTwo(this.backoffFactor), this.growthInterval],
          });
          for (const { storage } of [factor, tracker]) storage.overwritten();
        }),
      );
    } else {
      const isNumber = typeof newScale === "number";
      if (isNumber) checkNumber("the new scale", newScale, newScale > 0, "a finite number > 0");
      else checkTensor(`${where}.update`, newScale);
      factor.set(isNumber ? newScale : newScale.reshape([]));
    }
    const reading = this.reading;
    const examined = [...this.examined.values()];
    this.examined.clear();
    const free = () => {
      for (const { found } of examined) found.dispose();
    };
    if (reading !== null) return reading.then(free);
    free();
    return undefined;
  }

  /** 1 where it is not enabled. */
  async getScale(): Promise<number> {
    if (!this.enabled) return 1;
    return this.factor === null ? this.initial.scale : this.factor.item();
  }

  /** @throws OptError NOT_SYNC where the device cannot be read at once */
  stateDict(): GradScalerState {
    if (!this.enabled) return {};
    return {
      scale: this.factor?.dataSync()[0] ?? this.initial.scale,
      growth_factor: this.growthFactor,
      backoff_factor: this.backoffFactor,
      growth_interval: this.growthInterval,
      _growth_tracker: this.tracker?.dataSync()[0] ?? this.initial.tracker,
    };
  }

  /** @throws OptError BAD_STATE for the state of a scaler that was not enabled, and numbers that are none */
  loadStateDict(state: GradScalerState): void {
    if (!this.enabled) return;
    const isState = typeof state === "object" && state !== null;
    const { scale, growth_factor, backoff_factor, growth_interval, _growth_tracker } = isState ? state : {};
    const all = [scale, growth_factor, backoff_factor, growth_interval, _growth_tracker];
    check(
      all.every((value) => typeof value === "number" && Number.isFinite(value)),
      "BAD_STATE",
      where,
      () =>
        `the state must have the numbers scale, growth_factor, backoff_factor, growth_interval and _growth_tracker.`,
      "It may be of a scaler that was not enabled.",
    );
    this.growthFactor = growth_factor!;
    this.backoffFactor = backoff_factor!;
    this.growthInterval = growth_interval!;
    this.initial = { scale: scale!, tracker: _growth_tracker! };
    this.factor?.set(scale!);
    this.tracker?.set(_growth_tracker!);
  }

  /** Frees what it has on the device; it can go on from there. */
  dispose(): void {
    for (const x of [this.factor, this.tracker, ...[...this.examined.values()].map(({ found }) => found)]) x?.dispose();
    this.examined.clear();
    this.factor = null;
    this.tracker = null;
  }

  private apply(optimizer: Scalable, isUnscaled: boolean, around: Around): () => void {
    return noGrad(() => tidy(() => optimizer.apply(isUnscaled ? around : { ...around, unscale: this.inverse() })));
  }

  private known(method: string): { factor: Tensor; tracker: Tensor } {
    const { factor, tracker } = this;
    checkOrder(factor !== null && tracker !== null, () => `${method}() came before scale(loss).`);
    return { factor, tracker } as { factor: Tensor; tracker: Tensor };
  }

  private inverse(): Tensor {
    return elementwise("div", [1, this.known("step").factor]);
  }

  private examine(optimizer: Scalable, grads: readonly Tensor[]): Examined {
    const { factor } = this.known("step");
    checkOneDevice(where, [factor, ...grads]);
    const found = tidy(() => {
      const sum = cast(sumsOf(grads, true), "f32").sum();
      return select(less(sum, 0.5), 0, 1);
    });
    const examined: Examined = { stage: "unscaled", found: keep(found) };
    this.examined.set(optimizer, examined);
    return examined;
  }
}

function gradientsOf(optimizer: Scalable): Tensor[] {
  const grads = optimizer.groups.flatMap(({ params }) => params.flatMap(({ grad }) => (grad === null ? [] : [grad])));
  checkOrder(grads.length > 0, () => "the optimizer has no gradients.");
  return grads;
}

/** A float32 number and what it lacks. */
function inTwo(factor: number): [number, number] {
  return [Math.fround(factor), factor - Math.fround(factor)];
}

function checkNumber(name: string, value: number, fits: boolean, rule: string): void {
  const problem = () => `${name} must be ${rule}, got ${value}.`;
  check(fits && Number.isFinite(value), "BAD_ARGUMENT", where, problem, "The defaults are PyTorch's.");
}

function checkOrder(fits: boolean, problem: () => string): void {
  const advice =
    "Call scale(loss).backward(), then perhaps unscale(optimizer), step(optimizer), update(), awaiting the last two.";
  check(fits, "BAD_STATE", where, problem, advice);
}
