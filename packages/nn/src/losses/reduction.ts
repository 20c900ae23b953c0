/** How the losses of the elements become the loss. */
import { check, show, type Tensor } from "@opt/core";

export type Reduction = "mean" | "sum" | "none";

const REDUCTIONS: readonly unknown[] = ["mean", "sum", "none"] satisfies Reduction[];

/** @throws OptError BAD_ARGUMENT */
export function checkReduction(where: string, reduction: unknown): void {
  const known = REDUCTIONS.includes(reduction);
  check(
    known,
    "BAD_ARGUMENT",
    where,
    () => `reduction must be "mean", "sum" or "none", got ${show(reduction)}.`,
    'Use "mean".',
  );
}

export function reduce(losses: Tensor, reduction: Reduction): Tensor {
  if (reduction === "none") return losses;
  return reduction === "sum" ? losses.sum() : losses.mean();
}
