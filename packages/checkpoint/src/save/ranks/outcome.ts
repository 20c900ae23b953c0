/** An error as a message: ranks and threads tell each other how it went, and nobody waits for one that has failed. */
import { type ErrorCode, OptError } from "@opt/core";

export interface Failure {
  readonly failed: { readonly code: ErrorCode; readonly where: string; readonly message: string };
}

export type Outcome<T> = { readonly value: T } | Failure;

export async function outcomeOf<T>(body: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await body() };
  } catch (error) {
    return failureOf(error);
  }
}

export function failureOf(error: unknown): Failure {
  const { code, where } = error instanceof OptError ? error : { code: "INTERNAL" as const, where: "saveCheckpoint" };
  return { failed: { code, where, message: error instanceof Error ? error.message : String(error) } };
}

/** The value, or the same error thrown here. */
export function unwrap<T>(outcome: Outcome<T>): T {
  if ("value" in outcome) return outcome.value;
  const { code, where, message } = outcome.failed;
  const error = new OptError(code, where, "");
  error.message = message;
  throw error;
}
