import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { showAs } from "../../host/inspect-symbol";
import { checkMetric } from "./check";
import { momentumOf, setMomentum } from "./momentum";
import {
  currentValue,
  initialValue,
  noteInitialValue,
  type ScheduledGroup,
  type ScheduledOptimizer,
  type ScheduleOptions,
  setValue,
} from "./scheduled-optimizer";
import { checkState, keysOf, type SchedulerState, savedInteger, savedNumbers, stateOf } from "./state";

/**
 * A learning-rate schedule: call `step()` once after each epoch (or each batch), after the optimizer's own step.
 *
 * With `option` it moves another number of the optimizer's groups by the same formula. What the formula and the options call lr
 * is then that one. Making a schedule sets it for epoch 0, so make it before loading an optimizer's state.
 *
 * @throws OptError BAD_ARGUMENT if the optimizer has no groups with a numeric lr, or no number of the name `option`
 * @example
 * const decay = new CosineAnnealingLR(optimizer, { option: "weightDecay", tMax: 100 });
 */
export abstract class LRScheduler {
  readonly optimizer: ScheduledOptimizer;
  /** The schedules that this one drives. */
  protected readonly parts: readonly LRScheduler[];
  protected readonly kind: string;
  /** The option of the optimizer's groups that it moves. */
  readonly option: string;
  /** The value with which each group began. */
  protected bases: number[];
  /** beta1 or momentum of a group at an epoch, for the schedules that cycle it. */
  protected momentumAt?: (epoch: number, index: number) => number;
  #lastEpoch = 0;
  #lastLr: number[];

  constructor(
    kind: string,
    optimizer: ScheduledOptimizer,
    options: ScheduleOptions,
    parts: readonly LRScheduler[] = [],
  ) {
    this.option = checkedOption(kind, optimizer, options);
    this.kind = kind;
    this.optimizer = optimizer;
    this.parts = parts;
    this.bases = optimizer.groups.map((group) => initialValue(group, this.option));
    this.#lastLr = this.#values();
    showAs(this, () => `${this.kind}(lastEpoch=${this.lastEpoch}, lastLr=[${this.lastLr.join(", ")}])`);
  }

  /** Steps taken since the schedule was made or took over; -1 where it still waits for its turn. */
  get lastEpoch(): number {
    return this.#lastEpoch;
  }

  /** Each group's learning rate, or other `option`, after this schedule's last step. */
  get lastLr(): readonly number[] {
    return this.#lastLr;
  }

  /** All options that it and its parts move. @internal */
  get movedOptions(): readonly string[] {
    return this.parts.length > 0 ? this.parts.flatMap((part) => part.movedOptions) : [this.option];
  }

  /** Moves on by one epoch, after a look at the metric where one is given; a step that throws changes nothing. */
  abstract step(metric?: number): void;

  /** Takes note of a metric, as a `ReduceLROnPlateau` does; other schedules ignore it. @throws OptError BAD_ARGUMENT if it is no number */
  observe(metric: number): void {
    checkMetric(this.kind, metric);
  }

  /** Runs a step of several parts; where one throws, all are put back. */
  protected wholly(body: () => void): void {
    const restore = this.snapshot();
    try {
      body();
    } catch (error) {
      restore();
      throw error;
    }
  }

  /** Goes back to before epoch 0 without touching the optimizer. @internal */
  rewind(): void {
    this.#lastEpoch = -1;
  }

  /** Computes every group's value and momentum for an epoch, then sets them. */
  protected moveTo(epoch: number, at: (index: number) => number): void {
    const { groups } = this.optimizer;
    const values = groups.map((_, index) => at(index));
    const { momentumAt } = this;
    const momenta = momentumAt && groups.map((_, index) => momentumAt(epoch, index));
    groups.forEach((group, index) => {
      setValue(group, this.option, values[index] as number);
      if (momenta) setMomentum(group, momenta[index] as number);
    });
    this.record(epoch);
  }

  /** The value that a group has now. */
  protected present(index: number): number {
    return currentValue(this.optimizer.groups[index]!, this.option);
  }

  /** The value with which a group began. */
  protected base(index: number): number {
    return this.forGroup(this.bases, index, this.option === "lr" ? "base lr" : `first ${this.option}`);
  }

  #values(): number[] {
    return this.optimizer.groups.map((group) => currentValue(group, this.option));
  }

  /** Notes that `epoch` is done, with the values that the groups have now. */
  protected record(epoch: number): void {
    this.#lastEpoch = epoch;
    this.#lastLr = this.#values();
  }

  /** Entry `index` of a list that was made with one entry for each group. @throws OptError BAD_STATE for a group added later */
  protected forGroup<Value>(list: readonly Value[], index: number, what: string): Value {
    check(
      index < list.length,
      "BAD_STATE",
      this.kind,
      () => `${what} must be known for every group, got none for group ${index}, which was added later.`,
      "Add every group first, then make the schedule.",
    );
    return list[index] as Value;
  }

  /** Progress as plain JSON. Options and functions are not in it: give them to the constructor again. */
  stateDict(): SchedulerState {
    const { groups } = this.optimizer;
    const keys = keysOf(this.option);
    const state: SchedulerState = {
      kind: this.kind,
      ...(this.option !== "lr" && { option: this.option }),
      lastEpoch: this.lastEpoch,
      [keys.bases]: [...this.bases],
      [keys.values]: this.#values(),
    };
    if (this.momentumAt) state.momentum = groups.map((group) => momentumOf(group) as number);
    if (this.parts.length > 0) state.schedulers = this.parts.map((part) => part.stateDict());
    return state;
  }

  /** Goes on from a saved state, giving the groups the values they had. @throws OptError BAD_STATE, and changes nothing, if it does not fit */
  loadStateDict(state: unknown): void {
    this.prepareLoad(state)();
  }

  /** Checks a state and returns what loads it, so that nothing is loaded before every part was checked. @internal */
  prepareLoad(state: unknown): () => void {
    const saved = stateOf(this.kind, this.option, state);
    const { groups } = this.optimizer;
    const lastEpoch = savedInteger(this.kind, saved, "lastEpoch", -1);
    const keys = keysOf(this.option);
    const values = savedNumbers(this.kind, saved, keys.values, groups.length);
    const bases = savedNumbers(this.kind, saved, keys.bases, groups.length, 0);
    const momenta = this.momentumAt && savedNumbers(this.kind, saved, "momentum", groups.length);
    const loadParts = this.#prepareParts(saved.schedulers);
    return () => {
      for (const load of loadParts) load();
      this.bases = [...bases, ...this.bases.slice(bases.length)];
      groups.forEach((group, index) => {
        setValue(group, this.option, values[index] as number);
        if (index < bases.length) noteInitialValue(group, this.option, bases[index] as number);
        if (momenta) setMomentum(group, momenta[index] as number);
      });
      this.record(lastEpoch);
    };
  }

  #prepareParts(states: unknown): (() => void)[] {
    if (this.parts.length === 0) return [];
    const got = Array.isArray(states) ? states.length : "none";
    const problem = () => `state must hold ${this.parts.length} schedulers, got ${got}.`;
    checkState(Array.isArray(states) && states.length === this.parts.length, this.kind, problem);
    return this.parts.map((part, index) => part.prepareLoad(states[index]));
  }

  /** Returns what puts this schedule and its groups back as they are now. @internal */
  snapshot(): () => void {
    const epoch = this.#lastEpoch;
    const lastLr = this.#lastLr;
    const values = this.#values();
    const groups = this.optimizer.groups.map((group) => ({ group, momentum: momentumOf(group) }));
    const parts = this.parts.map((part) => part.snapshot());
    return () => {
      for (const restore of parts) restore();
      groups.forEach(({ group, momentum }, index) => {
        setValue(group, this.option, values[index] as number);
        if (this.momentumAt) setMomentum(group, momentum as number);
      });
      this.#lastEpoch = epoch;
      this.#lastLr = lastLr;
    };
  }
}

/** The option that a schedule moves: a number in each group. @throws OptError BAD_ARGUMENT */
function checkedOption(where: string, optimizer: ScheduledOptimizer, options: ScheduleOptions): string {
  const { option = "lr" } = Object(options) as ScheduleOptions;
  const groups = optimizer?.groups;
  const isNumber = (group: ScheduledGroup) =>
    typeof group === "object" && typeof currentValue(group, option) === "number";
  const fits = Array.isArray(groups) && groups.every((group) => group && isNumber(group));
  if (option === "lr" || !Array.isArray(groups)) {
    const rule = "an object with groups that have an lr";
    checkValue(fits, where, "optimizer", rule, optimizer, "Pass the optimizer first.");
  }
  const numbers = Object.entries(groups[0] ?? {}).filter(([, value]) => typeof value === "number");
  const advice = `Use ${numbers.map(([name]) => name).join(", ")}.`;
  checkValue(fits, where, "option", "a number in all of the optimizer's groups", option, advice);
  return option;
}
