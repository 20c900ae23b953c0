import { type ErrorCode, OptError } from "@opt/core";
import { expect } from "vitest";

/** Expects a promise to be rejected with this code; returns the message. */
export async function expectCode(code: ErrorCode, promise: Promise<unknown>): Promise<string> {
  const outcome = await promise.then(
    () => "nothing was thrown",
    (error: unknown) => error,
  );
  if (!(outcome instanceof OptError)) throw outcome instanceof Error ? outcome : new Error(String(outcome));
  expect([outcome.code, outcome.message]).toEqual([code, outcome.message]);
  return outcome.message;
}
