/** Bodies that run at once: what tidy, noGrad and recordings set for them would be over at a first await. */
import { OptError } from "../errors/errors";
import { show } from "../errors/show";

/** @throws OptError BAD_ARGUMENT unless it is a function */
export function checkBody(where: string, body: unknown): void {
  if (typeof body === "function") return; // before any words are made: every op may be inside a body
  const advice = `For example ${where}(() => model.forward(x)).`;
  throw new OptError("BAD_ARGUMENT", where, `body must be a function, got ${show(body)}.`, advice);
}

export const isPromise = (result: unknown): result is Promise<unknown> =>
  typeof (result as { then?: unknown } | null | undefined)?.then === "function";

/** @throws OptError BAD_ARGUMENT for a promise in the place of a result */
export function checkSynchronous(where: string, result: unknown): void {
  if (!isPromise(result)) return;
  Promise.resolve(result).catch(() => {}); // what it rejects with is said here
  const problem = "body must be synchronous, got a promise.";
  throw new OptError("BAD_ARGUMENT", where, problem, `Await before or after ${where}.`);
}
