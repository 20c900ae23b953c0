/** Plans the launches of a step: one for all parameters that share device, dtype, counters and penalty. */
import type { Scalar, Slice } from "../backend/memory";
import type { Kernel } from "../backend/spec";
import type { Device } from "../device/device";
import { activeRecorder, type Repeated } from "../device/recorder";
import { changes, versionNumbers } from "../device/versions";
import { check, OptError } from "../errors/errors";
import { ARITHMETIC } from "../rule/interpret";
import type { Rule } from "../rule/rule";
import type { SparseGradient, Tensor } from "../tensor/tensor";
import type { DType } from "../values/dtype";
import type { Algorithm, BaseOptions, Counters, GroupOptions } from "./algorithm";
import { checkGroup } from "./check";
import { advanced, checkRule } from "./check-rule";
import { Counting } from "./counting";
import { type Around, ruleAround, type Step, scalarsAround, stepsAround } from "./gradients/around";
import { checked, type Regularizer } from "./gradients/regularizer";
import type { Slot } from "./slot";
import { completeState } from "./state/complete-state";
import { formatsOf, type ParameterState, stateKeys, stochasticRounding } from "./state/state";

/** One launch to come: what is new in it since the last step. */
export interface Update {
  readonly bucket: Bucket;
  readonly scalars: readonly Scalar[];
  /** The slots' counters before the launch and after. */
  readonly before: Counters;
  readonly counters: Counters;
}

/** What slots of one launch have in common: from step to step the same, while nothing has moved. */
export interface Bucket {
  readonly device: Device;
  readonly kernel: Kernel<"rule">;
  readonly tensors: (readonly Slice[])[];
  /** The gradient of all its slots, of which no more than the rows are stepped. */
  readonly lazy: SparseGradient | undefined;
  readonly slots: Slot[];
  /** What it overwrites: parameters, their master copies, and state. */
  readonly written: Tensor[];
  /** Under which its overwrites are counted. */
  versions: Int32Array;
  /** Of the parameters. */
  readonly dtype: DType;
  readonly regularizer: Regularizer | null;
  /** The parameters are rounded at random. */
  readonly isDrawn: boolean;
  readonly around: Around;
  readonly plain: Rule;
  readonly rule: Rule;
  readonly keys: readonly string[];
  /** `changes.disposed` when all state was seen to be alive. */
  readonly alive: number;
  /** `changes.leaves` when all gradients were seen to be those of the launch. */
  seen: number;
  /** The slots with master copies. */
  readonly masters: Slot[];
  readonly counting: Counting;
  /** For replays: the next steps of the same slots by the same rule, after this one. */
  repeated(update: Update): Repeated;
}

/**
 * Launches for the slots of a group that have gradients. Completes their state; counts no step yet.
 * Throws DISPOSED for parameters and gradients that were freed.
 * `last` is what this returned for the group's last step: where nothing has moved since, only counters and scalars are new.
 * `hasStages`: the rule's last buffer is yet to come.
 */
export function planUpdates<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: Options & GroupOptions,
  all: readonly Slot[],
  around: Around,
  last: readonly Update[] = [],
  hasStages = false,
): Update[] {
  const plain = algorithm.rule(options);
  if (!last[0] || last[0].bucket.plain !== plain) checkRule(algorithm, plain, hasStages);
  const { regularizer: penalty = null } = options;
  if (typeof penalty !== "function" && activeRecorder() === null) {
    // a recorder is told of every gradient
    const steps = stepsAround(around, options, penalty);
    if (hasNotMoved(last, ruleAround(plain, steps), penalty, options, all.length)) {
      const updates = new Array<Update>(last.length);
      for (let i = 0; i < last.length; i++) {
        const { bucket } = last[i]!;
        const { now } = bucket.counting;
        updates[i] = updateOf(algorithm, options, bucket, steps, now, advanced(algorithm, now, options));
      }
      return updates;
    }
  }
  return planAnew(algorithm, plain, options, all, around);
}

function planAnew<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  plain: Rule,
  options: Options & GroupOptions,
  all: readonly Slot[],
  around: Around,
): Update[] {
  const present = all.filter((slot) => slot.hasGradient());
  const keys = stateKeys(plain);
  completeState(present, plain, algorithm.initialCounters, options);
  const known = new Map<Counters, Counters>();
  const updates: Update[] = [];
  let update: Update | undefined;
  for (const slot of present) {
    const before = slot.state!.counters;
    const regularizer = regularizerOf(options, slot.name);
    const lazy = options.lazyMode ? slot.param.grad!.sparse : undefined;
    const isDrawn = slot.isDrawn(Boolean(options.stochasticRounding));
    if (update === undefined || !fits(update, slot, before, regularizer, lazy, isDrawn)) {
      update = updates.find((known) => fits(known, slot, before, regularizer, lazy, isDrawn));
    }
    if (update === undefined) {
      const { device, dtype } = slot.param;
      const counters = known.get(before) ?? advanced(algorithm, before, options);
      known.set(before, counters);
      const formats = formatsOf(plain, slot.param, slot.state!, isDrawn);
      const steps = stepsAround(around, options, regularizer);
      const rule = ruleAround(plain, steps);
      const kernel = device.kernel({ kind: "rule", rule, ...formats });
      const slots: Slot[] = [];
      const bucket: Bucket = {
        device,
        dtype,
        regularizer,
        isDrawn,
        lazy,
        around,
        plain,
        rule,
        kernel,
        keys,
        alive: changes.disposed,
        seen: -1,
        tensors: [],
        slots,
        masters: [],
        counting: new Counting(slots),
        written: [],
        versions: new Int32Array(),
        repeated: (update) => new RepeatedUpdate(algorithm, options, update),
      };
      update = updateOf(algorithm, options, bucket, steps, before, counters);
      updates.push(update);
    }
    const { bucket } = update;
    bucket.slots.push(slot);
    if (slot.hasMaster) bucket.masters.push(slot);
    bucket.tensors.push(slot.gather(bucket.keys, lazy !== undefined));
    bucket.written.push(...slot.written);
  }
  for (const { bucket } of updates)
    bucket.versions = versionNumbers(new Set(bucket.written.map(({ storage }) => storage)));
  return updates;
}

/** True if the launches of the last step fit this one: of all parameters, with the same rule, penalty, gradients and state. */
function hasNotMoved(
  last: readonly Update[],
  rule: Rule,
  penalty: Regularizer | null,
  { stochasticRounding = false }: GroupOptions,
  all: number,
): boolean {
  let count = 0;
  for (const { bucket } of last) {
    const { slots, counting, masters } = bucket;
    count += slots.length;
    if (bucket.rule !== rule || bucket.alive !== changes.disposed) return false;
    if (!samePenalty(bucket.regularizer, penalty) || bucket.isDrawn !== Boolean(stochasticRounding)) return false;
    const { ahead, now } = counting; // replays may have counted on
    if (ahead && bucket.seen === changes.leaves && masters.length === 0) continue;
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i]!;
      if (!slot.isSettled() || (!ahead && slot.state!.counters !== now)) return false;
    }
    bucket.seen = changes.leaves;
  }
  return count === all;
}

function updateOf<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: Options & GroupOptions,
  bucket: Bucket,
  steps: readonly Step[],
  before: Counters,
  counters: Counters,
): Update {
  const scalars = scalarsOf(algorithm, options, bucket.plain, counters);
  if (steps.length > 0) scalars.push(...scalarsAround(steps, bucket.kernel.spec.dtype));
  if (bucket.isDrawn)
    scalars.push(...stochasticRounding.keys!(options.stochasticRounding, counters.step, bucket.device));
  return { bucket, before, counters, scalars };
}

/** A launch in a recorded step, from one replay to the next. */
class RepeatedUpdate<Options extends BaseOptions> implements Repeated {
  readonly #states: readonly (ParameterState | null)[];
  /** The slots whose parameters nobody else overwrites before the next hooks: these may look, and steps after them do. */
  #following: readonly Slot[] = [];
  /** The slots with master copies whose parameters the step takes as it finds them, set by others perhaps. */
  readonly #found: readonly Slot[];
  readonly #settings: readonly unknown[];
  /** The counters before the step that was counted last. */
  #before: Counters;

  constructor(
    private readonly algorithm: Algorithm<Options>,
    private readonly options: Options & GroupOptions,
    private readonly update: Update,
  ) {
    const { bucket } = update;
    this.#states = bucket.slots.map((slot) => slot.state);
    this.#found = bucket.masters.filter((slot) => !activeRecorder()?.overwrites(slot.param.storage));
    this.#settings = settingsOf(options);
    this.#before = update.before;
  }

  recorded(): void {
    this.#following = this.update.bucket.slots.filter((slot) => slot.hasFollowed());
  }

  check(): void {
    const { algorithm, options, update } = this;
    const { slots, plain, regularizer, counting } = update.bucket;
    checkGroup(algorithm, options);
    const penalties = typeof options.regularizer === "function" ? slots.length : 1;
    let isSameRule = algorithm.rule(options) === plain && areSame(settingsOf(options), this.#settings);
    for (let i = 0; isSameRule && i < penalties; i++)
      isSameRule = samePenalty(regularizerOf(options, slots[i]!.name), regularizer);
    if (!isSameRule) {
      const problem = "options were set that it does not cover.";
      throw new OptError("BAD_STATE", algorithm.name, problem, "Record the step again.");
    }
    if (!counting.ahead) this.#checkStates();
  }

  #checkStates(): void {
    const { algorithm, update } = this;
    const states = this.#states;
    const { slots } = update.bucket;
    const counters = slots[0]!.state?.counters;
    const other = slots.findIndex(
      ({ state }, i) => state === null || state !== states[i] || state.counters !== counters,
    );
    const what = () => (slots[other]!.state === states[other] ? "stepped apart from the others" : "loaded or freed");
    check(
      other < 0,
      "BAD_STATE",
      algorithm.name,
      () => `the state of ${slots[other]!.name} was ${what()} since the step was recorded.`,
      "Record the step again.",
    );
  }

  renew(): readonly Scalar[] {
    const { algorithm, options, update } = this;
    const { device, plain, isDrawn, counting } = update.bucket;
    for (const slot of this.#found) slot.master();
    this.#before = counting.now;
    const next = advanced(algorithm, this.#before, options);
    const scalars = scalarsOf(algorithm, options, plain, next);
    for (let i = scalars.length; i < update.scalars.length; i++) scalars.push(update.scalars[i]!);
    if (isDrawn) scalars.splice(-2, 2, ...stochasticRounding.keys!(options.stochasticRounding, next.step, device));
    counting.count(next);
    return scalars;
  }

  undo(): void {
    this.update.bucket.counting.count(this.#before);
  }

  launched(): void {
    for (const slot of this.#following) slot.followed();
    if (this.update.bucket.around.skipped?.()) this.undo();
  }
}

export function scalarsOf<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: Options,
  rule: Rule,
  counters: Counters,
): Scalar[] {
  const values = algorithm.scalars(options, counters, ARITHMETIC);
  const { scalars: names } = rule;
  const scalars = new Array<Scalar>(names.length); // of this length: what is pushed has room for 17
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!;
    const value = values[name];
    if (typeof value !== "number") {
      const problem = `scalars() must give rule ${rule.name} the number ${name}, got ${value}.`;
      throw new OptError("BAD_ARGUMENT", algorithm.name, problem, "Name it there as the rule does.");
    }
    scalars[i] = value;
  }
  return scalars;
}

/** Options that a launch was made for, beside the rule and the penalty. */
export function settingsOf({
  maximize,
  clip,
  lazyMode,
  stochasticRounding,
}: BaseOptions & GroupOptions): readonly unknown[] {
  return [maximize, clip?.norm, clip?.value, Boolean(lazyMode), Boolean(stochasticRounding)];
}

export function areSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return a.length === b.length;
}

export function regularizerOf({ regularizer }: GroupOptions, name: string): Regularizer | null {
  const chosen = typeof regularizer === "function" ? regularizer(name) : (regularizer ?? null);
  return chosen === null ? null : checked(chosen);
}

function fits(
  { bucket, before: known }: Update,
  slot: Slot,
  before: Counters,
  regularizer: Regularizer | null,
  lazy: SparseGradient | undefined,
  isDrawn: boolean,
): boolean {
  const { param } = slot;
  const [first] = bucket.slots;
  const hasSameState = (key: string) => slot.state!.tensors.get(key)!.dtype === first!.state!.tensors.get(key)!.dtype;
  return (
    bucket.lazy === lazy &&
    bucket.isDrawn === isDrawn &&
    known === before &&
    bucket.device === param.device &&
    bucket.dtype === param.dtype &&
    bucket.keys.every(hasSameState) &&
    samePenalty(bucket.regularizer, regularizer)
  );
}

function samePenalty(a: Regularizer | null, b: Regularizer | null): boolean {
  return a === b || (a !== null && b !== null && a.kind === b.kind && a.coefficient === b.coefficient);
}
