/** Text that is equal for two optimizers only if they compute the same. */
import type { BaseOptions } from "./algorithm";
import type { Optimizer } from "./optimizer";

/** The algorithm's name and the hash of the rule of each group. Processes that step together compare it: their packages may be of two versions. */
export function ruleHashes<Options extends BaseOptions>(optimizer: Optimizer<Options>): string[] {
  // biome-ignore lint/complexity/useLiteralKeys: what is protected is reached so
  const algorithm = optimizer["algorithm"];
  return optimizer.groups.map((group) => `${algorithm.name} ${algorithm.rule(group).hash}`);
}
