/** Text that is equal for two optimizers only if they compute the same. */
import type { BaseOptimizer } from "./base-optimizer";

/**
 * The algorithm's name and the hash of the rule of each group, and what wraps them. Processes that step together compare it: their
 * packages may be of two versions.
 */
export const ruleHashes = (optimizer: BaseOptimizer): string[] => [...optimizer.hashes];
