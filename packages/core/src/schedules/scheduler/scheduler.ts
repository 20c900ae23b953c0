import { check } from "../../errors/errors";
import { showAs } from "../../host/inspect-symbol";
import { checkValue } from "./check";
import { momentumOf, setMomentum } from "./momentum";
import { initialLr, noteInitialLr, type ScheduledOptimizer } from "./scheduled-optimizer";
import { checkState, type SchedulerState, savedInteger, savedNumbers, stateOf } from "./state";

/**
 * A learning-rate schedule: call `step()` once after each epoch (or each batch), after the optimizer's own step.
 *
 * Making a schedule sets each group's lr for epoch 0, so make it before loading an optimizer's state.
 *
 * @throws OptError BAD_ARGUMENT if the optimizer has no groups with a numeric lr
 */
export abstract class LRScheduler {
  readonly optimizer: ScheduledOptimizer;
  /** The schedules that this one drives. */
  protected readonly parts: readonly LRScheduler[];
  protected readonly kind: string;
  protected baseLrs: number[];
  /** beta1 or momentum of a group at an epoch, for the schedules that cycle it. */
  protected momentumAt?: (epoch: number, index: number) => number;
  #lastEpoch = 0;
  #lastLr: number[];

  constructor(kind: string, optimizer: ScheduledOptimizer, parts: readonly LRScheduler[] = []) {
    const groups = optimizer?.groups;
    const fits = Array.isArray(groups) && groups.every((group) => typeof group?.lr === "number");
    const rule = "an object with groups that have an lr";
    checkValue(fits, kind, "optimizer", rule, optimizer, "Pass the optimizer first.");
    this.kind = kind;
    this.optimizer = optimizer;
    this.parts = parts;
    this.baseLrs = groups.map(initialLr);
    this.#lastLr = groups.map((group) => group.lr);
    showAs(this, () => `${this.kind}(lastEpoch=${this.lastEpoch}, lastLr=[${this.lastLr.join(", ")}])`);
  }

  /** Steps taken since the schedule was made or took over; -1 where it still waits for its turn. */
  get lastEpoch(): number {
    return this.#lastEpoch;
  }

  /** Each group's learning rate after this schedule's last step. */
  get lastLr(): readonly number[] {
    return this.#lastLr;
  }

  /** Moves on by one epoch; a step that throws changes nothing. */
  abstract step(metric?: number): void;

  /** Goes back to before epoch 0 without touching the optimizer. @internal */
  rewind(): void {
    this.#lastEpoch = -1;
  }

  /** Computes every group's lr and momentum for an epoch, then sets them. */
  protected moveTo(epoch: number, lrOf: (index: number) => number): void {
    const { groups } = this.optimizer;
    const lrs = groups.map((_, index) => lrOf(index));
    const { momentumAt } = this;
    const momenta = momentumAt && groups.map((_, index) => momentumAt(epoch, index));
    groups.forEach((group, index) => {
      group.lr = lrs[index] as number;
      if (momenta) setMomentum(group, momenta[index] as number);
    });
    this.record(epoch);
  }

  /** Notes that `epoch` is done, with the lr that the groups have now. */
  protected record(epoch: number): void {
    this.#lastEpoch = epoch;
    this.#lastLr = this.optimizer.groups.map((group) => group.lr);
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
    const state: SchedulerState = {
      kind: this.kind,
      lastEpoch: this.lastEpoch,
      baseLrs: [...this.baseLrs],
      lr: groups.map((group) => group.lr),
    };
    if (this.momentumAt) state.momentum = groups.map((group) => momentumOf(group) as number);
    if (this.parts.length > 0) state.schedulers = this.parts.map((part) => part.stateDict());
    return state;
  }

  /** Goes on from a saved state, giving the groups the lr they had. @throws OptError BAD_STATE, and changes nothing, if it does not fit */
  loadStateDict(state: unknown): void {
    this.prepareLoad(state)();
  }

  /** Checks a state and returns what loads it, so that nothing is loaded before every part was checked. @internal */
  prepareLoad(state: unknown): () => void {
    const saved = stateOf(this.kind, state);
    const { groups } = this.optimizer;
    const lastEpoch = savedInteger(this.kind, saved, "lastEpoch", -1);
    const lr = savedNumbers(this.kind, saved, "lr", groups.length);
    const baseLrs = savedNumbers(this.kind, saved, "baseLrs", groups.length, 0);
    const momenta = this.momentumAt && savedNumbers(this.kind, saved, "momentum", groups.length);
    const loadParts = this.#prepareParts(saved.schedulers);
    return () => {
      for (const load of loadParts) load();
      this.baseLrs = [...baseLrs, ...this.baseLrs.slice(baseLrs.length)];
      groups.forEach((group, index) => {
        group.lr = lr[index] as number;
        if (index < baseLrs.length) noteInitialLr(group, baseLrs[index] as number);
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
    const groups = this.optimizer.groups.map((group) => ({ group, lr: group.lr, momentum: momentumOf(group) }));
    const parts = this.parts.map((part) => part.snapshot());
    return () => {
      for (const restore of parts) restore();
      for (const { group, lr, momentum } of groups) {
        group.lr = lr;
        if (momentum !== undefined) setMomentum(group, momentum);
      }
      this.#lastEpoch = epoch;
      this.#lastLr = lastLr;
    };
  }
}
