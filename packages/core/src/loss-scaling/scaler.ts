/** Loss scaling for gradients in 16 bits: the loss is scaled up so that small gradients do not vanish, and steps that overflow are skipped. */
import { afterEachRun, dependsOn, inEachRun, runsOnce } from "../device/host-code";
import { keep, tidy } from "../device/scope";
import { openTracer } from "../device/tracer";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { show } from "../errors/show";
import { where as choose, less } from "../functions";
import { cast, elementwise } from "../ops";
import { checkTensor } from "../ops/check-tensor";
import type { ClipOptions } from "../optimizer/algorithm";
import { checkOneDevice } from "../optimizer/gradients/clip";
import { gradientsOf, scaleInPlace, sumsOf } from "../optimizer/gradients/norm";
import type { Around } from "../optimizer/plan";
import { axesOf, largestOf } from "../placement/across";
import { decode, readBytesSync } from "../tensor/read";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { type Growth, LossScale } from "./loss-scale";

export interface GradScalerOptions {
  /** The first factor of losses. Default 65536. */
  readonly initScale?: number;
  /** The factor grows by it after `growthInterval` steps without overflow, > 1. Default 2. */
  readonly growthFactor?: number;
  /** The factor shrinks by it at an overflow, < 1. Default 0.5. */
  readonly backoffFactor?: number;
  /** Default 2000. */
  readonly growthInterval?: number;
  /** false: losses and steps pass through. Default true. */
  readonly enabled?: boolean;
}

/** A scaler's state under PyTorch's keys; `{}` if it is not enabled. */
export interface GradScalerState {
  readonly scale?: number;
  readonly growth_factor?: number;
  readonly backoff_factor?: number;
  readonly growth_interval?: number;
  readonly _growth_tracker?: number;
}

/** An optimizer, as far as a scaler uses it. */
export interface Scalable {
  readonly groups: readonly { readonly params: readonly Tensor[]; readonly clip?: ClipOptions | null }[];
  /** @internal Of a divided optimizer, whose groups have parts: the parameters that have gradients. Its steps are awaited. */
  readonly wholes?: readonly Tensor[];
  /** @internal */
  readonly looksBefore: boolean;
  step(): void | Promise<void>;
  /** @internal */
  apply(around: Around): void | Promise<void>;
}

/** An optimizer between `unscale` or `step`, and `update`. */
interface ScaledOptimizer {
  phase: "unscaled" | "stepped";
  /** 1 if a gradient was not finite, else 0. */
  readonly found: Tensor;
  /** Whether a gradient was not finite, once the host has read it. */
  overflowed?: boolean;
  /** Stands for the traced call of a compiled function in which it was examined; null for none. */
  readonly call: object | null;
}

const where = "GradScaler";

/**
 * Scales losses up before backward, and skips steps whose gradients are not finite. Numbers and errors are those of torch.amp.GradScaler.
 * A skipped step runs no hooks and counts nowhere, bias corrections included. `stepWasSkipped` tells schedules and averages of it.
 *
 * js, wasm and cpu never wait. cuda waits in `step` for the gradients, as PyTorch does. On webgpu the host cannot wait, and a divided optimizer
 * steps later: `step` and `update` return a promise. Await it before you change gradients, scale a loss or save. In a compiled function unscale, step and update go together.
 *
 * @throws OptError BAD_ARGUMENT for options out of range; BAD_STATE for calls out of order; DEVICE_MISMATCH for losses of several devices
 * @example
 * const scaler = new GradScaler();
 * scaler.scale(crossEntropy(model.forward(x), y)).backward();
 * await scaler.step(optimizer);
 * await scaler.update();
 * if (scaler.stepWasSkipped) console.log("gradients overflowed"); // step no schedule then
 */
export class GradScaler {
  readonly #enabled: boolean;
  #growthFactor: number;
  #backoffFactor: number;
  #growthInterval: number;
  /** For the device of the first loss; until then what it will be made of. */
  #lossScale: LossScale | null = null;
  #initial: { scale: number; tracker: number };
  readonly #examined = new Map<Scalable, ScaledOptimizer>();
  /** What the host is still reading. */
  #reading: Promise<void> | null = null;
  /** An update that waits for it. */
  #updating: Promise<void> | null = null;
  #wasSkipped = false;

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
    this.#enabled = options.enabled ?? true;
    this.#growthFactor = growthFactor;
    this.#backoffFactor = backoffFactor;
    this.#growthInterval = growthInterval;
    this.#initial = { scale: initScale, tracker: 0 };
  }

  /** Whether the last `step` was skipped, because a gradient was not finite. Where `step` returned a promise: once it has resolved. */
  get stepWasSkipped(): boolean {
    return this.#wasSkipped;
  }

  /** The loss times the factor, for `backward`. */
  scale(loss: Tensor): Tensor {
    checkTensor(`${where}.scale`, loss);
    if (!this.#enabled) return loss;
    dependsOn(() => this.#updating ?? this.#lossScale);
    this.#checkUpdated();
    this.#lossScale ??= new LossScale(loss.device, this.#initial.scale, this.#initial.tracker);
    return loss.mul(this.#lossScale.factor);
  }

  /**
   * Divides the gradients of an optimizer's parameters by the factor, in place: to look at them or to clip them before `step`, which
   * does it by itself otherwise. @throws OptError BAD_STATE the second time since `update`
   */
  unscale(optimizer: Scalable): void {
    if (!this.#enabled) return;
    const known = this.#examinedBefore("unscale", optimizer);
    checkOrder(
      known === undefined,
      () => `unscale() came after ${known!.phase === "unscaled" ? "unscale" : "step"}().`,
    );
    const grads = gradientsIn(optimizer);
    check(
      !grads.some(isHalf),
      "UNSUPPORTED",
      `${where}.unscale`,
      () => "gradients of f16 lose what the factor saved, got one.",
      "Let the optimizer clip: { norm: 1 }, or train in bf16.",
    );
    noGrad(() => {
      const found = this.#examine(optimizer, grads);
      tidy(() => scaleInPlace(grads, this.#inverse()));
      this.#note("unscaled", optimizer, found);
    });
  }

  /**
   * The optimizer's step on unscaled gradients, unless one is not finite. It divides them in its own launch and leaves `grad` scaled.
   * If a group limits norms or a hook runs before the step, it divides them in place before, as `unscale` does, if none is f16.
   *
   * @throws OptError BAD_STATE the second time since `update`, without gradients, or (in the promise) for gradients that were changed
   * before it was awaited; UNSUPPORTED in a compiled function where the host cannot wait
   */
  step(optimizer: Scalable, closure?: () => unknown): Promise<void> | undefined {
    const before = this.#examinedBefore("step", optimizer);
    if (!this.#enabled) {
      if (closure === undefined) return optimizer.step() ?? undefined;
      (optimizer.step as (closure: () => unknown) => unknown)(closure);
      return undefined;
    }
    check(
      closure === undefined,
      "UNSUPPORTED",
      `${where}.step`,
      () => "a closure would find gradients of the scaled loss, got one.",
      "Call backward before step(optimizer).",
    );
    checkOrder(before?.phase !== "stepped", () => "step() came after step().");
    checkOrder(this.#reading === null, () => "the last step was not awaited.");
    // A norm is PyTorch's to the bit if gradients are unscaled before. Those of f16 would lose digits, and their squares cannot overflow.
    // Hooks that run before a step clip and set gradients as they do without a scaler.
    const looks = () => optimizer.looksBefore || optimizer.groups.some(({ clip }) => Number(clip?.norm) >= 0); // the step rejects others
    dependsOn(looks);
    if (looks() && before === undefined && !gradientsIn(optimizer).some(isHalf)) this.unscale(optimizer);
    const unscaled = this.#examined.get(optimizer);
    const found = unscaled?.found ?? noGrad(() => this.#examine(optimizer, gradientsIn(optimizer)));
    try {
      const isLater = found.device.backend.readSync === undefined || optimizer.wholes !== undefined;
      if (isLater) return this.#stepLater(optimizer, found, unscaled !== undefined);
      this.#stepNow(optimizer, found, unscaled !== undefined);
    } catch (error) {
      if (unscaled === undefined) found.dispose();
      throw error;
    }
    return undefined;
  }

  /** The host looks whether gradients were finite. A compiled function has the launches of a step that its device may skip. */
  #stepNow(optimizer: Scalable, found: Tensor, isUnscaled: boolean): void {
    const flag = { isSkipped: false }; // of this optimizer: another one may step before this step is counted
    const runsAgain = inEachRun([found], (found) => {
      this.#wasSkipped = flag.isSkipped = decode(found, readBytesSync(found))[0]! > 0;
    });
    noGrad(() =>
      tidy(() => {
        const unscale = isUnscaled ? undefined : this.#inverse();
        if (runsAgain) optimizer.apply({ unscale, skip: found, skipped: () => flag.isSkipped });
        else if (!flag.isSkipped) optimizer.apply({ unscale });
      }),
    );
    this.#note("stepped", optimizer, found);
  }

  /** The host waits for the flag, and then steps or not. */
  #stepLater(optimizer: Scalable, found: Tensor, isUnscaled: boolean): Promise<void> {
    const advice = "Compile forward and backward, and await scaler.step(optimizer) outside.";
    runsOnce(`${where}.step`, `wait for gradients on ${found.device.name}`, advice);
    const unscale = isUnscaled ? undefined : keep(noGrad(() => this.#inverse()));
    const gradients = () => parametersOf(optimizer).map(({ grad }) => grad);
    const versions = () => gradients().map((grad) => grad?.storage.version);
    const [examined, seen] = [gradients(), versions()];
    const known = this.#note("stepped", optimizer, found);
    this.#reading = found
      .data()
      .then(([value]) => {
        known.overflowed = this.#wasSkipped = value! > 0;
        if (known.overflowed) return;
        const areSame = gradients().every((grad, i) => grad === examined[i]) && String(versions()) === String(seen);
        check(
          areSame,
          "BAD_STATE",
          where,
          () => "gradients were changed before step() was awaited.",
          "Await step(optimizer).",
        );
        return optimizer.apply({ unscale });
      })
      .catch((error) => {
        this.#forget(optimizer, found, isUnscaled); // the step can be tried again
        throw error;
      })
      .finally(() => {
        unscale?.dispose();
        this.#reading = null;
      });
    return this.#reading;
  }

  #forget(optimizer: Scalable, found: Tensor, isUnscaled: boolean): void {
    const known = this.#examined.get(optimizer);
    if (known?.found !== found) return; // updated meanwhile
    if (isUnscaled) known.phase = "unscaled";
    else {
      this.#examined.delete(optimizer);
      found.dispose();
    }
  }

  /** The factor of the next losses, by what this iteration's steps met. A number or a tensor given takes its place. */
  update(newScale?: number | Tensor): Promise<void> | undefined {
    if (!this.#enabled) return undefined;
    const lossScale = this.#known("update");
    this.#checkUpdated();
    this.#dropThrown();
    const examined = [...this.#examined.values()];
    for (const { call } of examined) checkOneCall("update", call);
    if (newScale === undefined) {
      checkOrder(examined.length > 0, () => "update() came before any step().");
      dependsOn(() => Object.values(this.#growth()).join());
      if (lossScale.isOnHost) return this.#updateOnHost(lossScale, examined);
      noGrad(() =>
        tidy(() => {
          const all = examined.map(({ found }) => found);
          const found = all.slice(1).reduce((sum, each) => sum.add(each), all[0]!);
          lossScale.update(found, this.#growth());
        }),
      );
    } else {
      const isNumber = typeof newScale === "number";
      if (isNumber) checkNumber("the new scale", newScale, newScale > 0, "a finite number > 0");
      else checkTensor(`${where}.update`, newScale);
      if (lossScale.isOnHost) runsOnce(`${where}.update`, `set a scale on ${lossScale.factor.device.name}`);
      const isLater = !isNumber && lossScale.isOnHost && newScale.device.backend.readSync === undefined;
      if (isLater) return this.#settle(examined, () => newScale.item().then((scale) => lossScale.replace(scale)));
      lossScale.replace(isNumber ? newScale : newScale.reshape([]));
    }
    return this.#settle(examined);
  }

  /** Now, if the host knows what each step met. */
  #updateOnHost(lossScale: LossScale, examined: readonly ScaledOptimizer[]): Promise<void> | undefined {
    const update = () => {
      const overflowed = examined.some((each) => each.overflowed);
      noGrad(() => lossScale.updateOnHost(overflowed, this.#growth()));
    };
    if (this.#reading === null && examined.every((each) => each.overflowed !== undefined)) {
      update();
      return this.#settle(examined);
    }
    return this.#settle(examined, async () => {
      for (const each of examined) each.overflowed ??= (await each.found.item()) > 0;
      update();
    });
  }

  /** Begins another iteration, when the present step and `last` are over. */
  #settle(examined: readonly ScaledOptimizer[], last?: () => Promise<void>): Promise<void> | undefined {
    this.#examined.clear();
    const free = () => {
      for (const { found } of examined) found.dispose();
    };
    if (this.#reading === null && last === undefined) {
      free();
      return undefined;
    }
    this.#updating = Promise.resolve(this.#reading)
      .then(last)
      .finally(() => {
        free();
        this.#updating = null;
      });
    return this.#updating;
  }

  #growth(): Growth {
    const [growthFactor, backoffFactor, growthInterval] = [
      this.#growthFactor,
      this.#backoffFactor,
      this.#growthInterval,
    ];
    return { growthFactor, backoffFactor, growthInterval };
  }

  #checkUpdated(): void {
    checkOrder(this.#updating === null, () => "the last update was not awaited.");
  }

  /** 1 if it is not enabled. */
  async getScale(): Promise<number> {
    if (!this.#enabled) return 1;
    await this.#updating;
    return this.#numbers().scale;
  }

  /** @throws OptError BAD_STATE before the last `update` was awaited */
  stateDict(): GradScalerState {
    if (!this.#enabled) return {};
    this.#checkUpdated();
    const { scale, tracker } = this.#numbers();
    return {
      scale,
      growth_factor: this.#growthFactor,
      backoff_factor: this.#backoffFactor,
      growth_interval: this.#growthInterval,
      _growth_tracker: tracker,
    };
  }

  #numbers(): { scale: number; tracker: number } {
    return this.#lossScale?.read() ?? this.#initial;
  }

  /** @throws OptError BAD_STATE for the state of a scaler that was not enabled, and numbers out of range; UNSUPPORTED in a compiled function */
  loadStateDict(state: unknown): void {
    runsOnce(where, "load a state");
    if (!this.#enabled) return;
    const isState = typeof state === "object" && state !== null;
    const { scale, growth_factor, backoff_factor, growth_interval, _growth_tracker } = (
      isState ? state : {}
    ) as GradScalerState;
    const all = [scale, growth_factor, backoff_factor, growth_interval, _growth_tracker];
    const areNumbers = all.every((value) => typeof value === "number" && value >= 0 && Number.isFinite(value));
    check(
      areNumbers &&
        growth_factor! > 1 &&
        backoff_factor! > 0 &&
        backoff_factor! < 1 &&
        Number.isInteger(growth_interval! || NaN) &&
        Number.isInteger(_growth_tracker),
      "BAD_STATE",
      where,
      () =>
        `the state must have the numbers scale >= 0, growth_factor > 1, backoff_factor between 0 and 1, and whole growth_interval and _growth_tracker, got ${show(state)}.`,
      "It may be of a scaler that was not enabled.",
    );
    this.#growthFactor = growth_factor!;
    this.#backoffFactor = backoff_factor!;
    this.#growthInterval = growth_interval!;
    this.#initial = { scale: scale!, tracker: _growth_tracker! };
    this.#lossScale?.load(scale!, _growth_tracker!);
  }

  /** Frees what it has on the device. Used again, it begins with `initScale`: `stateDict` keeps a scale. */
  dispose(): void {
    for (const { found } of this.#examined.values()) found.dispose();
    this.#examined.clear();
    this.#lossScale?.dispose();
    this.#lossScale = null;
  }

  #known(method: string): LossScale {
    const lossScale = this.#lossScale;
    checkOrder(lossScale !== null, () => `${method}() came before scale(loss).`);
    return lossScale!;
  }

  #inverse(): Tensor {
    return elementwise("div", [1, this.#known("step").factor]);
  }

  /** 1 if a gradient is not finite, on this rank or one that has other parts of the parameters; else 0. */
  #examine(optimizer: Scalable, grads: readonly Tensor[]): Tensor {
    const { factor } = this.#known("step");
    checkOneDevice(where, [factor, ...grads]);
    const axes = axesOf(parametersOf(optimizer));
    return keep(
      tidy(() => {
        const sum = cast(sumsOf(grads, true), "f32").sum();
        const found = cast(choose(less(sum, 0.5), 0, 1), "f32"); // as the rule of the scale reads it
        return axes.length === 0 ? found : largestOf(found, axes);
      }),
    );
  }

  /** @throws OptError BAD_ARGUMENT for what is no optimizer, UNSUPPORTED in a compiled function after what was done outside of it */
  #examinedBefore(method: string, optimizer: Scalable): ScaledOptimizer | undefined {
    const { groups, apply } = Object(optimizer) as Partial<Scalable>;
    const isOptimizer = Array.isArray(groups) && typeof apply === "function";
    check(
      isOptimizer,
      "BAD_ARGUMENT",
      `${where}.${method}`,
      () => `needs an optimizer, got ${show(optimizer)}.`,
      "Pass what new Adam(...) made.",
    );
    const present = () => {
      this.#dropThrown();
      return this.#examined.get(optimizer);
    };
    const known = present();
    if (known !== undefined) checkOneCall(method, known.call);
    else dependsOn(() => present()?.phase);
    return known;
  }

  /** A compiled function that threw before its update leaves nothing. */
  #dropThrown(): void {
    for (const [optimizer, { call, found }] of this.#examined) {
      if (call === null || call === openTracer()) continue;
      this.#examined.delete(optimizer);
      found.dispose();
    }
  }

  #note(phase: ScaledOptimizer["phase"], optimizer: Scalable, found: Tensor): ScaledOptimizer {
    const known = this.#examined.get(optimizer);
    if (known !== undefined) {
      known.phase = phase;
      return known;
    }
    const noted: ScaledOptimizer = { phase, found, call: openTracer() };
    this.#examined.set(optimizer, noted);
    afterEachRun(() => checkOneCall("update", this.#examined.get(optimizer)?.call ?? null));
    return noted;
  }
}

function checkOneCall(method: string, call: object | null): void {
  check(
    call === openTracer(),
    "UNSUPPORTED",
    `${where}.${method}`,
    () => "unscale, step and update go together in a compiled function, got some of them outside.",
    "Call all of them inside, or none of them.",
  );
}

const isHalf = ({ dtype }: Tensor) => dtype === "f16";

const parametersOf = ({ groups, wholes }: Scalable): readonly Tensor[] =>
  wholes ?? groups.flatMap(({ params }) => params);

function gradientsIn(optimizer: Scalable): Tensor[] {
  const grads = gradientsOf(parametersOf(optimizer));
  checkOrder(grads.length > 0, () => "the optimizer has no gradients.");
  return grads;
}

function checkNumber(name: string, value: number, fits: boolean, rule: string): void {
  check(
    fits && Number.isFinite(value),
    "BAD_ARGUMENT",
    where,
    () => `${name} must be ${rule}, got ${value}.`,
    "The defaults are PyTorch's.",
  );
}

function checkOrder(fits: boolean, problem: () => string): void {
  check(
    fits,
    "BAD_STATE",
    where,
    problem,
    "Call scale(loss).backward(), then perhaps unscale(optimizer), step(optimizer), update(), awaiting the last two.",
  );
}
