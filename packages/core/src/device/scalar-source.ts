/** Launches whose scalars the host computes in each run. */
import type { Scalar } from "../backend/memory";

/** A launch whose scalars the host computes in each run: an optimizer's step. */
export interface ScalarSource {
  /** The scalars of the next run. Changes nothing. @throws OptError BAD_ARGUMENT for options out of range */
  next(): readonly Scalar[];
  /** The launch ran: counts the step. */
  commit(): void;
}
