/** An optimizer made of others: one step, one state. */
import { dependsOn } from "../device/host-code";
import { tidy } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { OptError } from "../errors/errors";
import { showAs } from "../host/inspect-symbol";
import type { BaseOptions } from "../optimizer/algorithm";
import { BaseOptimizer, type Loading } from "../optimizer/base-optimizer";
import { limitedNorm } from "../optimizer/gradients/clip";
import type { Group } from "../optimizer/group";
import type { HookName } from "../optimizer/hooks";
import type { Around } from "../optimizer/plan";
import { checkParts, type OptimizerState } from "../optimizer/state/state-dict";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";

/** Any optimizer, or a wrapper of one. */
export type Wrappable<OwnGroup extends Group<BaseOptions>> = BaseOptimizer<unknown> & {
  readonly groups: readonly OwnGroup[];
};

/** Optimizers that keep averages of weights for evaluation. */
interface Averaging {
  train(): void;
  eval(): void;
}

/** True for an optimizer with `train` and `eval`, and for what wraps one. */
export function keepsAverages(optimizer: object): boolean {
  if (optimizer instanceof OptimizerWrapper) return optimizer.keepsAverages;
  return typeof (optimizer as Partial<Averaging>).eval === "function";
}

export abstract class OptimizerWrapper<OwnGroup extends Group<BaseOptions>> extends BaseOptimizer<
  OptimizerWrapper<OwnGroup>
> {
  /** @internal */
  protected override readonly where: string;
  /** @internal */
  protected readonly parts: readonly Wrappable<OwnGroup>[];

  constructor(where: string, parts: readonly Wrappable<OwnGroup>[]) {
    super();
    for (const part of parts) {
      const isOptimizer = part instanceof BaseOptimizer;
      checkValue(isOptimizer, where, "what it wraps", "an optimizer", part, "For example new AdamW(params).");
      const isPlain = !part.needsClosure;
      checkValue(isPlain, where, "what it wraps", "an optimizer without a closure", part, "SAM goes around others.");
    }
    this.where = where;
    this.parts = parts;
    showAs(this, () => `${this.where}(\n${parts.map((part) => String(part).replace(/^/gm, "  ")).join("\n")}\n)`);
  }

  get #averaging(): readonly Averaging[] {
    return this.parts.filter(keepsAverages) as unknown as Averaging[];
  }

  /** @internal */
  get keepsAverages(): boolean {
    return this.#averaging.length > 0;
  }

  /** Puts the weights to train in the place of averages, where its optimizers keep some (`ScheduleFreeAdamW`, `scheduleFree`). */
  train(): void {
    for (const each of this.#averaging) each.train();
  }

  /** Puts the averages in the place of the weights to train, where its optimizers keep some: to evaluate and save. */
  eval(): void {
    for (const each of this.#averaging) each.eval();
  }

  /** The groups of all its optimizers. */
  override get groups(): readonly OwnGroup[] {
    return this.parts.flatMap(({ groups }) => groups);
  }

  /** @throws OptError UNSUPPORTED always: what it wraps takes groups, and it keeps state of the parameters that it began with */
  addGroup(_group: unknown): never {
    const problem = "a wrapper takes no groups after it was made.";
    throw new OptError("UNSUPPORTED", this.where, problem, "Add the group to what it wraps, and wrap that anew.");
  }

  /** @internal */
  protected override update(around: Around): void {
    noGrad(() => tidy(() => this.planned(around)()));
  }

  /** @internal Everything is planned before the first launch, so that an error in one leaves the others as they were. */
  override planned(around: Around): () => void {
    dependsOn(() => this.hookChanges);
    const norm = around.norm ?? limitedNorm(this.where, this.limited(), around.unscale);
    const own = norm === around.norm ? around : { ...around, norm };
    const launches = this.parts.map((part) => part.planned(own));
    return () => {
      for (const launch of launches) launch();
    };
  }

  /** @internal */
  override get hashes(): readonly string[] {
    return this.parts.flatMap(({ hashes }) => hashes.map((hash) => `${this.where} of ${hash}`));
  }

  /** @internal */
  override get needsWholes(): boolean {
    return this.parts.some(({ needsWholes }) => needsWholes);
  }

  /** @internal */
  override limited(): readonly Tensor[] {
    return this.parts.flatMap((part) => part.limited());
  }

  /** @internal */
  override get looksBefore(): boolean {
    return super.looksBefore || this.parts.some(({ looksBefore }) => looksBefore);
  }

  /** @internal */
  override runHooks(event: HookName, around: Around): void {
    for (const part of this.parts) part.runHooks(event, around);
    super.runHooks(event, around);
  }

  /** Options by group and state by parameter name, of all its optimizers, as `Optimizer.stateDict` gives them. */
  override stateDict(): OptimizerState {
    const states = this.parts.map((part) => part.stateDict());
    return {
      groups: states.flatMap(({ groups }) => groups),
      state: Object.assign({}, ...states.map(({ state }) => state)),
    };
  }

  /** @internal */
  override loading(saved: OptimizerState): Loading {
    checkParts(this.where, saved, this.groups.length);
    const loadings: Loading[] = [];
    const discard = () => {
      for (const loading of loadings) loading.discard();
    };
    try {
      for (const [part, own] of dealt(this.parts, saved)) loadings.push(part.loading(own));
    } catch (error) {
      discard();
      throw error;
    }
    return {
      commit: () => {
        for (const loading of loadings) loading.commit();
      },
      discard,
    };
  }

  override dispose(): void {
    for (const part of this.parts) part.dispose();
  }
}

/** The state of each part. What no group lists goes to the first, which rejects it. */
function dealt<Part extends { readonly groups: readonly unknown[] }>(
  parts: readonly Part[],
  { groups, state }: OptimizerState,
): (readonly [Part, OptimizerState])[] {
  const namesIn = (of: OptimizerState["groups"]) => of.flatMap((group) => (group?.params ?? []).map(String));
  const listed = new Set(namesIn(groups));
  let begin = 0;
  return parts.map((part, p) => {
    const own = groups.slice(begin, begin + part.groups.length);
    begin += part.groups.length;
    const names = new Set(namesIn(own));
    const isOwn = (name: string) => names.has(name) || (p === 0 && !listed.has(name));
    return [part, { groups: own, state: Object.fromEntries(Object.entries(state).filter(([name]) => isOwn(name))) }];
  });
}
