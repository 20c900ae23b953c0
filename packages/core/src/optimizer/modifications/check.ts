/** Checks of modifications, and what steps need to know of them. */
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { isPlainObject } from "../../errors/show";
import type { Algorithm, BaseOptions } from "../algorithm";
import { stateKeys } from "../state/state";
import type { ModificationOptions } from "./options";

/** True for those that look at whole tensors. */
export const isStaged = ({ cautious, mars, hyperball, centralize }: ModificationOptions): boolean =>
  Boolean(cautious || mars || hyperball || centralize);

/** @throws OptError UNSUPPORTED for modifications that look at whole tensors, where a step is a rule of single elements */
export function checkElementwise(where: string, options: ModificationOptions): void {
  check(
    !isStaged(options),
    "UNSUPPORTED",
    where,
    () => "a step of single elements has no cautious, mars, hyperball or centralize.",
    "Use the class.",
  );
}

/** beta1 of an optimizer's averages; undefined where it has none. */
export function beta1Of(options: object): number | undefined {
  const { betas, momentum } = options as { readonly betas?: readonly number[]; readonly momentum?: number };
  return betas?.[0] ?? momentum;
}

/** The weight decay that is added to gradients before the rule, or 0. */
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
  check(
    !decay || hasDecay,
    "UNSUPPORTED",
    where,
    () => `decay needs the option weightDecay, which ${where} lacks.`,
    "Leave it out.",
  );
  for (const [name, goesByRate] of Object.entries({ hyperball: options.hyperball, decay: decay && decay !== "l2" }))
    check(
      !goesByRate || !algorithm.findsRate,
      "UNSUPPORTED",
      where,
      () => `${name} goes by lr, which ${where} takes as a factor of the rate that it finds.`,
      "Leave it out. weightDecay goes by that rate.",
    );
  if (mars !== null) {
    checkOptions(`${where} mars`, mars, { gamma: "number" });
    const fits = isPlainObject(mars) && Number.isFinite(mars.gamma);
    checkValue(fits, where, "mars", "{ gamma } with a number", mars, "For example { gamma: 0.025 }.");
    const beta1 = beta1Of(options);
    check(
      beta1 !== undefined,
      "UNSUPPORTED",
      where,
      () => `mars needs betas or momentum, which ${where} lacks.`,
      "Leave it out.",
    );
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
  // A copy that the rule does not have is where the parameter began, not what it is an average of.
  const copies = Object.entries(initialState?.(options) ?? {}).filter(([, value]) => value === "param");
  const isAverage = copies.length > 0 && copies.some(([key]) => stateKeys(algorithm.rule(options)).includes(key));
  check(
    !isAverage || !(options.cautious || options.hyperball),
    "UNSUPPORTED",
    where,
    () => "its parameters are averages, which cautious and hyperball would change.",
    "Use another optimizer.",
  );
}
