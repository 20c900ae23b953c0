/** Rejections are tested by their code: `expectCode("BAD_ARGUMENT", () => new NAdam([w], { lr: -1 }))`. */
import { type ErrorCode, OptError } from "@opt/core";
import { expect } from "vitest";

/** Passes if `body` throws, or its promise rejects with, an OptError of that code. Await it when `body` is async. */
export function expectCode(code: ErrorCode, body: () => Promise<unknown>): Promise<void>;
export function expectCode(code: ErrorCode, body: () => unknown): void;
export function expectCode(code: ErrorCode, body: () => unknown): void | Promise<void> {
  let result: unknown;
  try {
    result = body();
  } catch (error) {
    checkCode(code, error);
    return;
  }
  if (result instanceof Promise) {
    return result.then(
      () => failMissing(code),
      (error: unknown) => checkCode(code, error),
    );
  }
  failMissing(code);
}

function failMissing(code: ErrorCode): never {
  expect.fail(`expected an OptError ${code}, but nothing was thrown`);
}

function checkCode(code: ErrorCode, error: unknown): void {
  if (!(error instanceof OptError)) throw error;
  if (error.code !== code) expect.fail(`expected an OptError ${code}, got ${error.code}: ${error.message}`);
  expect(error.message, "an error names where it comes from").toMatch(/^\[.+\] /);
}
