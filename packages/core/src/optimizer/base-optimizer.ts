/** What optimizers and their wrappers have in common: closures, hooks, and steps that are planned before they launch. */
import { dependsOn, runsOnce } from "../device/host-code";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { fillInPlace } from "../ops";
import { recordingSetTo } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { type HookName, Hooks } from "./hooks";
import type { Around } from "./plan";
import type { OptimizerState } from "./state/state-dict";

/** A step of which nothing more is said. */
export const NOTHING: Around = {};

/** A state that fits and waits to be taken over. */
export interface Loading {
  commit(): void;
  /** Frees its copies. */
  discard(): void;
}

/** Any optimizer: one of a class, several combined, or a wrapper. `Owner` is what hooks are called with. */
export abstract class BaseOptimizer<Owner = unknown> {
  abstract readonly groups: readonly { readonly params: readonly Tensor[] }[];
  readonly #hooks = new Hooks<Owner>();

  /** @internal Its name, for messages. */
  protected abstract get where(): string;

  /** @internal True if a step calls its closure. */
  get needsClosure(): boolean {
    return false;
  }

  /**
   * One update of every parameter that has a gradient; the others are left alone and do not count the step.
   *
   * @throws OptError BAD_ARGUMENT if a group's options were set out of range; DISPOSED for gradients that were freed; OUT_OF_MEMORY.
   * Nothing has changed then.
   */
  step(): void;
  /**
   * The same after `closure`, which recomputes the loss and its gradients.
   *
   * @returns what `closure` returns
   * @throws OptError BAD_ARGUMENT if it is asynchronous; and as `step()` does
   */
  step<Loss>(closure: () => Loss): Loss;
  step<Loss>(closure?: () => Loss): Loss | undefined {
    const isFunction = closure === undefined || typeof closure === "function";
    check(
      isFunction,
      "BAD_ARGUMENT",
      this.where,
      () => `step() takes nothing or a function, got ${typeof closure}.`,
      "The learning rate is an option: groups[0].lr.",
    );
    this.runHooks("beforeStep", NOTHING);
    const loss = closure === undefined ? undefined : recordingSetTo(`${this.where}.step`, true, closure);
    this.update(NOTHING);
    this.runHooks("afterStep", NOTHING);
    return loss;
  }

  /** @internal A step with what the device says of it. */
  apply(around: Around): void {
    this.runHooks("beforeStep", around);
    this.update(around);
    this.runHooks("afterStep", around);
  }

  /** @internal The step between the hooks. */
  protected abstract update(around: Around): void;

  /** @internal Checks a step and computes all but its launches, which the result makes. Called within `tidy`. */
  abstract planned(around: Around): () => void;

  /** @internal Of each group a text that is equal for two optimizers only if they compute the same. */
  abstract get hashes(): readonly string[];

  /** @internal True if a step looks at more than single elements. */
  abstract get needsWholes(): boolean;

  /** @internal The parameters in groups that limit their norm, after a look at what was written to the options. */
  abstract limited(): readonly Tensor[];

  /** @internal Hooks may look at gradients before a step. */
  get looksBefore(): boolean {
    return this.#hooks.has("beforeStep");
  }

  /** @internal */
  runHooks(event: HookName, around: Around): void {
    if (this.#hooks.has(event)) this.#hooks.run(event, this as unknown as Owner, around, this.parameters());
  }

  /** @internal How often a hook came or went. */
  protected get hookChanges(): number {
    return this.#hooks.changes;
  }

  /** @internal Those of all groups. */
  protected parameters(): readonly Tensor[] {
    return this.groups.flatMap(({ params }) => params);
  }

  /** Calls `hook` before or after every step. Returns what removes it. */
  on(event: HookName, hook: (optimizer: Owner) => void): () => void {
    return this.#hooks.add(this.where, event, hook);
  }

  /** Clears all gradients: to null, or to zeros in place. Gradients made by backward are freed; clone one to keep it. */
  zeroGrad(options: { setToNull?: boolean } = {}): void {
    checkOptions("zeroGrad", options, { setToNull: "boolean" });
    const { setToNull = true } = options;
    dependsOn(() => this.groups.length);
    for (const { params } of this.groups) {
      for (const param of params) {
        if (setToNull) param.clearGradient();
        else if (param.grad !== null) {
          // What is added next must not go on along the tape of what was there.
          if (param.grad.node) param.grad = param.grad.alias();
          fillInPlace(param.grad.sparse?.emptied() ?? param.grad, 0);
        }
      }
    }
  }

  abstract stateDict(): OptimizerState;

  /** @internal Checks and copies a state without changing anything. @throws OptError BAD_STATE if it does not fit */
  abstract loading(saved: OptimizerState): Loading;

  /**
   * Takes over options and state: groups by position, parameters by name (by position if names are numbers).
   * State is copied, and cast to its parameter's dtype and device. Saved options replace the present ones, as in PyTorch, and so does
   * the penalty. What the state does not name (another library's, a penalty by function) stays, and so does `stateDType`: state is
   * packed as this optimizer's option says.
   * Tensors of a parameter's shape that only other options need are kept until those are set.
   *
   * @throws OptError BAD_STATE if it does not fit. Nothing has changed then.
   */
  loadStateDict(saved: OptimizerState): void {
    runsOnce(this.where, "load a state");
    this.loading(saved).commit();
  }

  /** Frees the state. The optimizer can go on, from a fresh state; its parameters are left alone. */
  abstract dispose(): void;

  [Symbol.dispose](): void {
    this.dispose();
  }
}
