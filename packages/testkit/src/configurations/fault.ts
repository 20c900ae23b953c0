/** What is wrong with what the ranks told of a configuration. */
import { reasonsOf } from "./combines";
import { type Configuration, PLANTED, ranksOf } from "./configuration";

export interface RankError {
  /** Null for what is no OptError. */
  readonly code: string | null;
  readonly message: string;
  readonly stack: string;
}

/** How it differs from one process, null if it does not; or what ranks threw. */
export interface Told {
  readonly difference?: string | null;
  /** Steps that the phase had done before. */
  readonly steps?: number;
  readonly errors?: readonly RankError[];
}

/** Null where all is as the docs say: right numbers, or an OptError before the first step for a reason that the page gives. */
export function faultOf(one: Configuration, { difference, errors, steps }: Told): string | null {
  if (one.throws !== undefined) {
    const told = (errors ?? []).map(({ message }) => message);
    const areAll = told.length === ranksOf(one.phases[0]) && told.every((message) => message.includes(PLANTED));
    return areAll
      ? null
      : `${steps ?? 0} steps, then another end: each rank must throw "${PLANTED}", got ${told.join("; ")}`;
  }
  const reasons = reasonsOf(one);
  if (errors === undefined) {
    if (difference) return difference;
    return reasons.length > 0 ? `must be rejected: ${reasons.map(({ says }) => says).join(" ")}` : null;
  }
  const isExplained = errors.every(({ code }) => reasons.some((reason) => reason.code === code));
  if (isExplained && (steps ?? 0) === 0) return null;
  const [{ code, message, stack }] = errors as [RankError];
  return `${steps ?? 0} steps, then ${code ?? "a raw error"}: ${message}\n${stack}`;
}
