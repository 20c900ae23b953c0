/** What an optimizer computes, as text that equals another's only if they compute the same. */
import type { BaseOptions } from "./algorithm";
import type { Optimizer } from "./optimizer";

/** Of each group the algorithm's name and the hash of its rule: processes that step together compare it. Two versions of a package may differ in it. */
export function ruleHashes<Options extends BaseOptions>(optimizer: Optimizer<Options>): string[] {
  // biome-ignore lint/complexity/useLiteralKeys: what is protected is reached so
  const algorithm = optimizer["algorithm"];
  return optimizer.groups.map((group) => `${algorithm.name} ${algorithm.rule(group).hash}`);
}
