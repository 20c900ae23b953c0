/** Distributions that are given by probabilities, or by their logarithms. */
import { check } from "../errors/errors";
import { DISTRIBUTION_OPTIONS, type DistributionOptions } from "./distribution";

/** What `checkOptions` lets through for them. */
export const PROBABILITY_OPTIONS = { ...DISTRIBUTION_OPTIONS, probs: "any", logits: "any" } as const;

interface ProbabilityOptions<Value> extends DistributionOptions {
  readonly probs?: Value;
  readonly logits?: Value;
}

/** @throws OptError BAD_ARGUMENT unless one of them is given */
export function oneOf<Value>(
  where: string,
  { probs, logits }: ProbabilityOptions<Value>,
): { readonly name: "probs" | "logits"; readonly value: Value } {
  check(
    (probs === undefined) !== (logits === undefined),
    "BAD_ARGUMENT",
    where,
    () => `takes either probs or logits, got ${probs === undefined ? "none" : "both"}.`,
    `For example new ${where}({ logits }).`,
  );
  return probs === undefined ? { name: "logits", value: logits as Value } : { name: "probs", value: probs };
}
