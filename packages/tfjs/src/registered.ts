/** Optimizers by name, for models whose saved configuration says which one trained them. */
import { algorithmOf, type BaseOptions, check, type OptimizerClass } from "@opt/core";

// biome-ignore lint/suspicious/noExplicitAny: each class has options of its own
type AnyClass = OptimizerClass<any>;

const classes = new Map<string, AnyClass>();

/** The name under which a class is found, from now on. @throws OptError BAD_ARGUMENT */
export function register<Options extends BaseOptions>(where: string, optimizer: OptimizerClass<Options>): string {
  const { name } = algorithmOf(where, optimizer);
  classes.set(name, optimizer);
  return name;
}

/**
 * Makes optimizers known to `tf.loadLayersModel`, which finds only a name in what `model.save("...", { includeOptimizer: true })` wrote.
 * An optimizer of which a `TfOptimizer` was made is known already.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * registerOptimizers(AdamW, NAdam);
 */
// biome-ignore lint/suspicious/noExplicitAny: each class has options of its own
export function registerOptimizers(...optimizers: readonly OptimizerClass<any>[]): void {
  for (const optimizer of optimizers) register("registerOptimizers", optimizer);
}

/** @throws OptError BAD_STATE */
export function registered(where: string, name: unknown): AnyClass {
  const found = classes.get(String(name));
  const known = [...classes.keys()].join(", ") || "none";
  check(
    found !== undefined,
    "BAD_STATE",
    where,
    () => `the optimizer ${String(name)} must be registered, got ${known}.`,
    `Call registerOptimizers(${String(name)}) first.`,
  );
  return found;
}
