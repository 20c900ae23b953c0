/** How the losses of the elements become the loss. */
import { check, show, type Tensor } from "@opt/core";

export type Reduction = "mean" | "sum" | "none";

const REDUCTIONS = ["mean", "sum", "none"] as const satisfies Reduction[];

/** @throws OptError BAD_ARGUMENT, which names the `known` ones */
export function checkReduction(where: string, reduction: unknown, known: readonly string[] = REDUCTIONS): void {
  const isKnown = known.includes(reduction as string);
  const list = known.map((name) => `"${name}"`).join(", ");
  check(
    isKnown,
    "BAD_ARGUMENT",
    where,
    () => `reduction must be one of ${list}, got ${show(reduction)}.`,
    `For example "${known[0]}".`,
  );
}

export function reduce(losses: Tensor, reduction: Reduction): Tensor {
  if (reduction === "none") return losses;
  return reduction === "sum" ? losses.sum() : losses.mean();
}
