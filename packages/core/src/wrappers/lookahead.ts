/** Lookahead: slow weights that follow an optimizer's fast ones. */
import { dependsOn } from "../device/host-code";
import { checkValue } from "../errors/check-value";
import { checkOptions } from "../errors/options";
import type { BaseOptions } from "../optimizer/algorithm";
import type { Group } from "../optimizer/group";
import type { Around } from "../optimizer/plan";
import { between, StatefulWrapper, writeInto } from "./stateful-wrapper";
import type { Wrappable } from "./wrapper";

const WHERE = "Lookahead";

export interface LookaheadOptions {
  /** Steps of the optimizer between two of the slow weights. Default 5. */
  readonly k?: number;
  /** How far the slow weights go towards the fast ones, in (0, 1]. Default 0.5. */
  readonly alpha?: number;
}

/**
 * Steps an optimizer's parameters, and after every k-th step moves slow weights towards them and starts again from there.
 *
 *     slow += alpha (param - slow)          param = slow
 *
 * State has `slow_param`, and each group counts its steps since the last one of the slow weights. Parameters are f32 or f64.
 * Source: Zhang et al., "Lookahead Optimizer: k steps forward, 1 step back" (2019).
 *
 * @throws OptError BAD_ARGUMENT for what is no optimizer, or options out of range; UNSUPPORTED for 16-bit and complex parameters
 * @example
 * const optimizer = new Lookahead(new AdamW([parameter([1, 2])]), { k: 5, alpha: 0.5 });
 */
export class Lookahead<OwnGroup extends Group<BaseOptions>> extends StatefulWrapper<OwnGroup, { steps: number }> {
  readonly #k: number;
  readonly #alpha: number;

  constructor(optimizer: Wrappable<OwnGroup>, options: LookaheadOptions = {}) {
    checkOptions(WHERE, options, { k: "number", alpha: "number" });
    const { k = 5, alpha = 0.5 } = options;
    checkValue(Number.isInteger(k) && k > 0, WHERE, "k", "a whole number of at least 1", k, "The default is 5.");
    checkValue(alpha > 0 && alpha <= 1, WHERE, "alpha", "above 0 and at most 1", alpha, "The default is 0.5.");
    super(WHERE, optimizer, "slowParam", { steps: 0 });
    this.#k = k;
    this.#alpha = alpha;
  }

  /** @internal */
  override planned(around: Around): () => void {
    const kept = this.kept();
    const next = this.groups.map((_, g) => (this.countersOf(g).steps + 1) % this.#k);
    dependsOn(() => this.groups.map((_, g) => (this.countersOf(g).steps + 1) % this.#k === 0).join());
    const launch = super.planned(around);
    return () => {
      launch();
      kept.forEach((group, g) => {
        if (next[g] !== 0) return;
        for (const { param, own } of group) {
          const slow = between(own, param, this.#alpha);
          writeInto(param, slow, param, around);
          writeInto(own, slow, own, around);
        }
      });
      this.count(around, ({ steps }) => ({ steps: (steps + 1) % this.#k }));
    };
  }
}
