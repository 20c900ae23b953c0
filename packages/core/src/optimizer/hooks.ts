/** Functions that run before and after steps. */
import { inEachRun } from "../device/host-code";
import { check } from "../errors/errors";
import { didYouMean } from "../errors/options";
import { show } from "../errors/show";
import type { Tensor } from "../tensor/tensor";
import type { Around } from "./plan";

/** The moments at which a hook may run. */
export type HookName = "beforeStep" | "afterStep";

export class Hooks<Owner> {
  readonly #hooks: Record<HookName, Set<(owner: never) => void>> = { beforeStep: new Set(), afterStep: new Set() };
  /** How often one came or went: compiled steps depend on it. */
  changes = 0;

  has(event: HookName): boolean {
    return this.#hooks[event].size > 0;
  }

  /** Returns what removes it. @throws OptError BAD_ARGUMENT */
  add(where: string, event: HookName, hook: (owner: Owner) => void): () => void {
    const events = Object.keys(this.#hooks);
    check(
      events.includes(event),
      "BAD_ARGUMENT",
      where,
      () => `events are ${events.join(" and ")}, got ${show(event)}.`,
      didYouMean(String(event), events),
    );
    check(typeof hook === "function", "BAD_ARGUMENT", where, () => `a hook must be a function, got ${typeof hook}.`);
    const hooks = this.#hooks[event];
    const own = (owner: Owner) => hook(owner); // the same function may come twice
    hooks.add(own);
    this.changes++;
    return () => {
      hooks.delete(own);
      this.changes++;
    };
  }

  /** Runs those of an event, unless the step is skipped. `params` are the tensors whose gradients they may look at. */
  run(event: HookName, owner: Owner, around: Around, params: readonly Tensor[]): void {
    const hooks = this.#hooks[event];
    if (hooks.size === 0) return;
    const call = () => {
      if (!around.skipped?.()) for (const hook of hooks) hook(owner as never);
    };
    inEachRun([], call, params);
  }
}
