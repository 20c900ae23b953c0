/** Averages of parameters, to evaluate and save in their place. */

import { afterEachRun, dependsOn, runsOnce } from "../device/host-code";
import { keep, tidy } from "../device/scope";
import { check } from "../errors/errors";
import { cast, clone, copyInto } from "../ops";
import { copyFrom } from "../ops/cast";
import { checkNumbers } from "../ops/check-tensor";
import { itemsOf, type NamedParameter, type Parameters, toParameters } from "../optimizer/parameters";
import { isReplaced, replacedBy } from "../tensor/replaced";
import { checkNotSummary } from "../tensor/summary";
import { noGrad } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { isFloat } from "../values/dtype";
import { sameShape, showShape } from "../values/shape";

const ALREADY = "Wait for averaged() to end.";

/** A parameter and its average. */
interface Entry {
  readonly name: string;
  readonly param: Tensor;
  readonly average: Tensor;
}

export interface WeightAverageOptions {
  /** Buffers (running statistics, which never required a gradient) are averaged too, instead of copied at each update. Default false. */
  readonly useBuffers?: boolean;
}

/** A buffer may be of integers. @throws OptError BAD_ARGUMENT */
function entryOf(where: string, item: Tensor | readonly [string, Tensor]): NamedParameter {
  const [name, tensor] = Array.isArray(item) ? item : [(item as Tensor | null)?.name ?? null, item];
  if (tensor instanceof Tensor && !tensor.isParameter && !isFloat(tensor.dtype)) return { name, tensor };
  const made = toParameters(where, [item] as Parameters)[0]!;
  checkNumbers(where, made.tensor);
  return made;
}

/** PyTorch's `AveragedModel`: the averages under `module.<name>`, and how often they were updated. */
export type WeightAverageState = { n_averaged: number | Tensor; [average: `module.${string}`]: Tensor };

/** Averages of parameters, the first of which are copies. Those of 16-bit parameters are kept in float32. */
export abstract class WeightAverage {
  readonly #where: string;
  readonly #entries: readonly Entry[];
  readonly #useBuffers: boolean;
  #updates = 0;
  #inPlace = false;

  protected constructor(where: string, params: Parameters, useBuffers: boolean) {
    this.#where = where;
    runsOnce(where, "make averages");
    this.#useBuffers = useBuffers;
    this.#entries = noGrad(() =>
      itemsOf<Tensor | readonly [string, Tensor]>(where, params).map((item, i) => {
        const { name, tensor } = entryOf(where, item);
        const kept = isFloat(tensor.dtype) && tensor.dtype !== "f64" ? "f32" : tensor.dtype;
        const average = tidy(() => clone(cast(tensor.detach(), kept)));
        average.placement = tensor.placement;
        return { name: name ?? String(i), param: tensor, average: keep(average) };
      }),
    );
    const names = new Set(this.#entries.map(({ name }) => name));
    check(
      names.size === this.#entries.length,
      "DUPLICATE",
      where,
      () => "parameters must have names of their own, got one twice.",
      "Pass model.namedParameters().",
    );
  }

  /** Moves an average towards its parameter, in place. */
  protected abstract move(average: Tensor, param: Tensor): void;

  /** The live averages. */
  protected get averages(): readonly Tensor[] {
    return this.#entries.map(({ average }) => average);
  }

  /**
   * Moves the averages towards the parameters. The first update copies them.
   *
   * @throws OptError BAD_STATE inside of `averaged`, and for parameters that were replaced in their module
   */
  update(): void {
    dependsOn(() => this.#isFirst());
    const isFirst = this.#isFirst();
    for (const { param, average } of this.#entries) {
      dependsOn(() => param.isParameter);
      if (isFirst || !(param.isParameter || this.#useBuffers)) copyFrom(average, param);
      else noGrad(() => tidy(() => this.move(average, param)));
    }
    afterEachRun(() => {
      this.#updates++;
    });
  }

  /** @throws OptError BAD_STATE if no update may come now */
  #isFirst(): boolean {
    this.#checkOutside();
    this.#checkPresent();
    return this.#updates === 0;
  }

  #checkPresent(): void {
    const params = this.#entries.map(({ param }) => param);
    for (const param of params) {
      check(
        !isReplaced(param, params),
        "BAD_STATE",
        this.#where,
        () => replacedBy(param),
        "Make the averages after model.to(...).",
      );
    }
  }

  #checkOutside(): void {
    check(!this.#inPlace, "BAD_STATE", this.#where, () => "the averages stand in the parameters' place.", ALREADY);
  }

  /**
   * Runs `body` with the averages in the parameters' place, and puts the parameters back after it, also if it throws or rejects.
   * Until then steps of optimizers that have them throw BAD_STATE: they would be undone.
   *
   * @throws OptError BAD_STATE inside of another one, UNSUPPORTED in a compiled function
   */
  averaged<Result>(body: () => Result): Result {
    check(
      typeof body === "function",
      "BAD_ARGUMENT",
      this.#where,
      () => `body must be a function, got ${typeof body}.`,
      "Pass () => evaluate().",
    );
    check(!this.#inPlace, "BAD_STATE", this.#where, () => "the averages are in place already.", ALREADY);
    runsOnce(this.#where, "call averaged()");
    this.#checkPresent();
    const own = noGrad(() => this.#entries.map(({ param }) => keep(clone(param))));
    const outside = this.#entries.map(({ param }) => [param.checkSteps, param.storage.isLent] as const);
    const restore = () => {
      this.#inPlace = false;
      this.#entries.forEach(({ param }, i) => {
        if (!param.isDisposed) copyInto(own[i]!, param);
        [param.checkSteps, param.storage.isLent] = outside[i]!;
        own[i]!.dispose();
      });
    };
    this.#inPlace = true;
    for (const { param } of this.#entries) {
      param.storage.isLent = true;
      param.checkSteps = (_, isStep) => isStep && this.#checkOutside(); // what is stepped now would be put back
    }
    let result: Result;
    try {
      for (const { param, average } of this.#entries) copyInto(average, param);
      result = body();
    } catch (error) {
      restore();
      throw error;
    }
    if (typeof (Object(result) as PromiseLike<unknown>).then === "function")
      return Promise.resolve(result).finally(restore) as Result;
    restore();
    return result;
  }

  /** The averages are the live ones, not copies: save or clone them before the next update. */
  stateDict(): WeightAverageState {
    const averages = this.#entries.map(({ name, average }) => [`module.${name}`, average]);
    return { n_averaged: this.#updates, ...Object.fromEntries(averages) };
  }

  /** Copies averages in, cast and moved to where ours are. @throws OptError BAD_STATE if they do not fit. Nothing has changed then. */
  loadStateDict(saved: Readonly<Record<string, unknown>>): void {
    runsOnce(this.#where, "load averages");
    const { n_averaged: given } = Object(saved) as Partial<WeightAverageState>;
    const updates = given instanceof Tensor && given.size === 1 ? given.dataSync()[0] : given;
    const isCount = Number.isInteger(updates) && (updates as number) >= 0;
    check(
      isCount,
      "BAD_STATE",
      this.#where,
      () => `n_averaged must be a whole number, got ${String(updates)}.`,
      "Pass what stateDict() returned.",
    );
    const found = this.#entries.map(({ name, average }) => {
      const value = saved[`module.${name}`];
      checkNotSummary(this.#where, `module.${name}`, value);
      check(
        value instanceof Tensor,
        "BAD_STATE",
        this.#where,
        () => `needs the tensor module.${name}, got ${typeof value}.`,
        "The model has changed since it was saved.",
      );
      value.checkAlive();
      check(
        sameShape(value.shape, average.shape),
        "BAD_STATE",
        this.#where,
        () => `module.${name} must have shape ${showShape(average.shape)}, got ${showShape(value.shape)}.`,
        "The model has changed since.",
      );
      return value;
    });
    noGrad(() => {
      this.#entries.forEach(({ average }, i) => {
        copyFrom(average, found[i]!);
      });
    });
    this.#updates = updates as number;
  }

  /** Frees the averages. */
  dispose(): void {
    for (const { average } of this.#entries) average.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
