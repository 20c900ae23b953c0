/** The scalars of launches that come before the main one of a step. */
import type { Scalar } from "../backend/memory";
import type { ScalarSource } from "../device/scalar-source";
import type { Rule } from "../rule/rule";
import type { BaseOptions, Counters } from "./algorithm";
import { advanced } from "./check-rule";
import { type PlannedLaunch, scalarsOf } from "./plan";

/** A launch before the main one. Nothing is counted for it. */
export class StageLaunch<Options extends BaseOptions> implements ScalarSource {
  /** Of the step, once its scalars are computed. */
  counters: Counters | null = null;

  constructor(
    readonly rule: Rule,
    private readonly main: PlannedLaunch<Options>,
    private readonly extraScalars: readonly Scalar[],
    private readonly constants: Readonly<Record<string, number>> = {},
  ) {}

  next(): readonly Scalar[] {
    const { rule, constants, main, extraScalars } = this;
    const { algorithm, group, counter } = main;
    const { counters: before } = counter;
    this.counters = advanced(algorithm, before, group.options);
    return [...scalarsOf(algorithm, group.options, rule, this.counters, before, constants), ...extraScalars];
  }

  commit(): void {}
}
