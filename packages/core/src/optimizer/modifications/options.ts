/** Modifications: options of every optimizer that change its gradients or its update, whatever its algorithm. */
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { isPlainObject } from "../../errors/show";
import type { Algorithm, BaseOptions } from "../algorithm";

/** Where the weight decay goes: added to the gradient, or taken off the parameter. */
export type Decay = "l2" | "decoupled" | "cautious" | "independent";

/** Modifications of an optimizer. They go with each other, and a state dict says which it was made with. */
export interface ModificationOptions {
  /**
   * Each element moves only where its update and the gradient agree, and the others move further for it:
   * u = u * (u g > 0) / max(mean(u g > 0), 1e-3), where p -= u. Source: Liang et al., "Cautious Optimizers" (2024). Default false.
   */
  cautious?: boolean;
  /**
   * What `weightDecay` does. "l2": grad += weightDecay * p. "decoupled": p -= lr * weightDecay * p. "cautious": the same, where the update and p
   * have one sign or one is 0 (Chen et al., "Cautious Weight Decay", 2025). "independent": p -= weightDecay * p * lr / the group's first lr
   * (Loshchilov & Hutter, 2019). Default: as the optimizer does.
   */
  decay?: Decay | null;
  /**
   * Variance reduction: the gradient is c = g + gamma * beta1 / (1 - beta1) * (g - last g), scaled to a norm of at most 1. beta1 is `betas[0]`, or
   * `momentum`. The last gradient is state, `last_grad`, at first 0. Source: Yuan et al., "MARS" (2024), with gamma 0.025. Default null.
   */
  mars?: { readonly gamma: number } | null;
  /**
   * Matrices, and tensors of more dimensions, keep the norm R of their first value, and move by lr * R: p = R (p - lr R u / |u|) / |p - lr R u / |u||.
   * R is state, `radius`. Source: Wen et al., "Hyperball Optimization" (2026). Default false.
   */
  hyperball?: boolean;
  /**
   * Gradients of matrices, and tensors of more dimensions, lose the mean of each of their rows (all but the first dimension).
   * Source: Yong et al., "Gradient Centralization" (2020). Default false.
   */
  centralize?: boolean;
}

/** True for those that look at whole tensors. */
export const isStaged = ({ cautious, mars, hyperball, centralize }: ModificationOptions): boolean =>
  Boolean(cautious || mars || hyperball || centralize);

/** beta1 of an optimizer's averages; undefined where it has none. */
export function beta1Of(options: object): number | undefined {
  const { betas, momentum } = options as { readonly betas?: readonly number[]; readonly momentum?: number };
  return betas?.[0] ?? momentum;
}

/** The weight decay that is added to gradients before the rule; 0 if none is. */
export function addedDecay({
  decay,
  weightDecay = 0,
}: ModificationOptions & { readonly weightDecay?: number }): number {
  return decay === "l2" ? weightDecay : 0;
}

const DECAYS: readonly unknown[] = [undefined, null, "l2", "decoupled", "cautious", "independent"];

/** @throws OptError BAD_ARGUMENT; UNSUPPORTED for what the algorithm does not go with */
export function checkModifications<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: Options & ModificationOptions & { readonly lazyMode?: boolean },
): void {
  const { name: where, defaults, initialState } = algorithm;
  const { decay, mars = null } = options;
  for (const name of ["cautious", "hyperball", "centralize"] as const) {
    const value = options[name] ?? false;
    checkValue(typeof value === "boolean", where, name, "true or false", value, "Leave it out for the default.");
  }
  checkValue(DECAYS.includes(decay), where, "decay", `one of ${DECAYS.slice(2).join(", ")}, or null`, decay);
  const hasDecay = "weightDecay" in defaults;
  check(!decay || hasDecay, "UNSUPPORTED", where, () => `decay says where weightDecay goes, which ${where} lacks.`);
  if (mars !== null) {
    checkOptions(`${where} mars`, mars, { gamma: "number" });
    const fits = isPlainObject(mars) && Number.isFinite(mars.gamma);
    checkValue(fits, where, "mars", "{ gamma } with a number", mars, "For example { gamma: 0.025 }.");
    const beta1 = beta1Of(options);
    check(beta1 !== undefined, "UNSUPPORTED", where, () => `mars needs betas or momentum, and ${where} has none.`);
    checkValue(beta1 < 1, where, "momentum with mars", "below 1", beta1);
  }
  if (options.cautious || options.hyperball || decay) algorithm.rule(options); // says what it does not go with
  if (!isStaged(options)) return;
  check(
    !options.lazyMode,
    "UNSUPPORTED",
    where,
    () => "cautious, mars, hyperball and centralize need whole gradients, and lazyMode steps some rows.",
    "Leave one out.",
  );
  const isAverage = Object.values(initialState?.(options) ?? {}).includes("param");
  check(
    !isAverage || !(options.cautious || options.hyperball),
    "UNSUPPORTED",
    where,
    () => `its parameters are averages, which cautious and hyperball would stop.`,
    "Use another optimizer.",
  );
}
