/** Loss scaling: gradients of 16 bits that would vanish are computed of a larger loss, and steps that overflowed are skipped. */

import { tensor } from "../../create";
import { activeRecorder, guardReplays, hooks, once, type Recorder } from "../../device/recorder";
import { keep, tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { show } from "../../errors/show";
import { less, select } from "../../functions";
import { cast, elementwise } from "../../ops";
import { checkTensor } from "../../ops/check-tensor";
import { decode } from "../../tensor/read";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import type { Around, ClipOptions } from "./around";
import { checkOneDevice } from "./clip";
import { updateScale } from "./loss-scale";
import { gradientsOf, scaleInPlace, sumsOf } from "./norm";

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
  /** @internal */
  readonly looksBefore: boolean;
  step(): void;
  /** @internal */
  apply(around: Around): () => void;
}

interface Examined {
  stage: "unscaled" | "stepped";
  /** 1 if a gradient was not finite, else 0. */
  readonly found: Tensor;
  /** The recorded step in which it was examined. */
  readonly recorder: Recorder | null;
  /** The recorded step updates, too. */
  isUpdated: boolean;
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
    const known = this.examinedBefore("unscale", optimizer);
    checkOrder(
      known === undefined,
      () => `unscale() came after ${known!.stage === "unscaled" ? "unscale" : "step"}().`,
    );
    const grads = gradientsIn(optimizer);
    const problem = () => "gradients of f16 lose what the factor saved, got one.";
    const advice = "Let the optimizer clip: { norm: 1 }, or train in bf16.";
    check(!grads.some(isHalf), "UNSUPPORTED", `${where}.unscale`, problem, advice);
    noGrad(() => {
      const found = this.examine(grads);
      tidy(() => scaleInPlace(grads, this.inverse()));
      this.note("unscaled", optimizer, found);
    });
  }

  /**
   * The optimizer's step on unscaled gradients, unless one is not finite. It divides them in its own launch and leaves `grad` scaled, but
   * where a group limits norms or a hook runs before the step: then they are divided in place before, as by `unscale`, if none is f16.
   *
   * @throws OptError BAD_STATE the second time since `update`, or without gradients
   */
  step(optimizer: Scalable, closure?: () => unknown): Promise<void> | undefined {
    const before = this.examinedBefore("step", optimizer);
    if (!this.enabled) {
      if (closure === undefined) optimizer.step();
      else (optimizer.step as (closure: () => unknown) => unknown)(closure);
      return undefined;
    }
    const problem = () => "a closure would find gradients of the scaled loss, got one.";
    check(closure === undefined, "UNSUPPORTED", `${where}.step`, problem, "Call backward before step(optimizer).");
    checkOrder(before?.stage !== "stepped", () => "step() came after step().");
    checkOrder(this.reading === null, () => "the last step was not awaited.");
    // A norm is PyTorch's to the bit if gradients are unscaled before; those of f16 would lose digits, and their squares cannot overflow.
    // Hooks that run before a step clip and set gradients as they are without a scaler.
    const looks = () => optimizer.looksBefore || optimizer.groups.some(({ clip }) => Number(clip?.norm) >= 0); // the step refuses others
    const looked = looks();
    guardReplays(() => {
      const problem = () => "a bound of norms or a hook before the step was set or taken away.";
      check(looks() === looked, "BAD_STATE", `${where}.step`, problem, "Record the step again.");
    });
    if (looked && before === undefined && !gradientsIn(optimizer).some(isHalf)) this.unscale(optimizer);
    const unscaled = this.examined.get(optimizer);
    const found = unscaled?.found ?? noGrad(() => this.examine(gradientsIn(optimizer)));
    try {
      return this.stepBy(optimizer, found, unscaled !== undefined);
    } catch (error) {
      if (unscaled === undefined) found.dispose();
      throw error;
    }
  }

  private stepBy(optimizer: Scalable, found: Tensor, isUnscaled: boolean): Promise<void> | undefined {
    const { backend } = found.device;
    const { memory, byteOffset } = found.memorySlice();
    const canLook = backend.readSync !== undefined;
    // Replays look at memory that the recording holds: the tensor is gone by then.
    const skipped = () => once(() => decode(found, backend.readSync!(memory, byteOffset, 4))[0]! > 0);
    const isRecorded = activeRecorder() !== null;
    if (!isRecorded && canLook) {
      if (!skipped()) this.apply(optimizer, isUnscaled, {});
      this.note("stepped", optimizer, found);
      return undefined;
    }
    const message = () => "the host cannot look at gradients without waiting on this device, got a recorded step.";
    const advice = "Record forward and backward, and step outside.";
    check(!isRecorded || canLook, "UNSUPPORTED", `${where}.step`, message, advice);
    const uncount = this.apply(optimizer, isUnscaled, canLook ? { skip: found, skipped } : { skip: found });
    this.note("stepped", optimizer, found);
    if (canLook) {
      if (skipped()) uncount();
      hooks(() => {}); // a later step in the same body has to know whether this one counted
      return undefined;
    }
    this.reading = found
      .data()
      .then(([value]) => {
        if (value! > 0) uncount();
      })
      .finally(() => {
        this.reading = null;
      });
    return this.reading;
  }

  /** The factor of the next losses, by what this iteration's steps met. A number or a tensor given takes its place. */
  update(newScale?: number | Tensor): Promise<void> | undefined {
    if (!this.enabled) return undefined;
    const { factor, tracker } = this.known("update");
    const examined = [...this.examined.values()];
    for (const each of examined) checkOneRecording("update", each);
    if (newScale === undefined) {
      checkOrder(examined.length > 0, () => "update() came before any step().");
      const { growthFactor, backoffFactor, growthInterval } = this;
      noGrad(() =>
        tidy(() => {
          const all = examined.map(({ found }) => found);
          const found = all.slice(1).reduce((sum, each) => sum.add(each), all[0]!);
          updateScale({ factor, tracker, found }, growthFactor, backoffFactor, growthInterval);
        }),
      );
      guardReplays(() => {
        const isSame = growthFactor === this.growthFactor && backoffFactor === this.backoffFactor;
        const other = () => "a state with another growth or backoff was loaded.";
        check(isSame && growthInterval === this.growthInterval, "BAD_STATE", where, other, "Record the step again.");
      });
    } else {
      const isNumber = typeof newScale === "number";
      if (isNumber) checkNumber("the new scale", newScale, newScale > 0, "a finite number > 0");
      else checkTensor(`${where}.update`, newScale);
      factor.set(isNumber ? newScale : newScale.reshape([]));
    }
    const { reading } = this;
    this.examined.clear();
    const free = () => {
      for (const { found } of examined) found.dispose();
    };
    for (const each of examined) each.isUpdated = each.recorder === activeRecorder();
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
  loadStateDict(state: unknown): void {
    if (!this.enabled) return;
    const isState = typeof state === "object" && state !== null;
    const { scale, growth_factor, backoff_factor, growth_interval, _growth_tracker } = (
      isState ? state : {}
    ) as GradScalerState;
    const all = [scale, growth_factor, backoff_factor, growth_interval, _growth_tracker];
    const areNumbers = all.every((value) => typeof value === "number" && value >= 0 && Number.isFinite(value));
    check(
      areNumbers &&
        scale! > 0 &&
        growth_factor! > 1 &&
        backoff_factor! > 0 &&
        backoff_factor! < 1 &&
        Number.isInteger(growth_interval! || NaN) &&
        Number.isInteger(_growth_tracker),
      "BAD_STATE",
      where,
      () =>
        `the state must have the numbers scale > 0, growth_factor > 1, backoff_factor between 0 and 1, and whole growth_interval and _growth_tracker, got ${show(state)}.`,
      "It may be of a scaler that was not enabled.",
    );
    this.growthFactor = growth_factor!;
    this.backoffFactor = backoff_factor!;
    this.growthInterval = growth_interval!;
    this.initial = { scale: scale!, tracker: _growth_tracker! };
    this.factor?.set(scale!);
    this.tracker?.set(_growth_tracker!);
  }

  /** Frees what it has on the device. Used again, it begins with `initScale`: `stateDict` keeps a scale. */
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

  /** 1 if a gradient is not finite, else 0. */
  private examine(grads: readonly Tensor[]): Tensor {
    const { factor } = this.known("step");
    checkOneDevice(where, [factor, ...grads]);
    return keep(
      tidy(() => {
        const sum = cast(sumsOf(grads, true), "f32").sum();
        return cast(select(less(sum, 0.5), 0, 1), "f32"); // as the rule of the scale reads it
      }),
    );
  }

  /** @throws OptError BAD_ARGUMENT for what is no optimizer, UNSUPPORTED in a recorded step after what was done outside of it */
  private examinedBefore(method: string, optimizer: Scalable): Examined | undefined {
    const { groups, apply } = Object(optimizer) as Partial<Scalable>;
    const isOptimizer = Array.isArray(groups) && typeof apply === "function";
    const problem = () => `needs an optimizer, got ${show(optimizer)}.`;
    // Divided ones step on several processes.
    const whole =
      "Pass what new Adam(...) made; one whose steps are awaited cannot skip them: train in bf16, without a scaler.";
    check(isOptimizer, "BAD_ARGUMENT", `${where}.${method}`, problem, whole);
    const known = this.examined.get(optimizer);
    checkOneRecording(method, known);
    return known;
  }

  private note(stage: Examined["stage"], optimizer: Scalable, found: Tensor): void {
    const known = this.examined.get(optimizer);
    if (known !== undefined) {
      known.stage = stage;
      return;
    }
    const examined: Examined = { stage, found, recorder: activeRecorder(), isUpdated: false };
    this.examined.set(optimizer, examined);
    guardReplays(() => {
      const problem = () => "the recorded step ends without update().";
      check(examined.isUpdated, "UNSUPPORTED", where, problem, WHOLE);
      checkOrder(!this.examined.has(optimizer), () => "a replay came before update().");
    });
  }
}

const WHOLE = "Record unscale, step and update together, or none of them.";

function checkOneRecording(method: string, known: Examined | undefined): void {
  const recorder = activeRecorder();
  const fits = known === undefined || recorder === null || known.recorder === recorder;
  const problem = () => "a recorded step cannot go on with what was begun before it.";
  check(fits, "UNSUPPORTED", `${where}.${method}`, problem, WHOLE);
}

const isHalf = ({ dtype }: Tensor) => dtype === "f16";

function gradientsIn(optimizer: Scalable): Tensor[] {
  const grads = optimizer.groups.flatMap(({ params }) => gradientsOf(params));
  checkOrder(grads.length > 0, () => "the optimizer has no gradients.");
  return grads;
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
