/** How the losses of the elements become the loss. */
import { OptError } from "@opt/core";

export type Reduction = "mean" | "sum" | "none";

const REDUCTIONS: readonly string[] = ["mean", "sum", "none"] satisfies Reduction[];

/** @throws OptError BAD_ARGUMENT */
export function checkReduction(where: string, reduction: Reduction): void {
  if (!REDUCTIONS.includes(reduction)) {
    const got = JSON.stringify(reduction);
    throw new OptError("BAD_ARGUMENT", where, `reduction must be "mean", "sum" or "none", got ${got}.`, `Use "mean".`);
  }
}
