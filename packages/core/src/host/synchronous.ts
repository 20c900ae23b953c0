/** Bodies that run at once: what tidy, noGrad and recordings set for them would be over at a first await. */
import { check } from "../errors/errors";
import { show } from "../errors/show";

/** @throws OptError BAD_ARGUMENT unless it is a function */
export function checkBody(where: string, body: unknown): void {
  const advice = `For example ${where}(() => model.forward(x)).`;
  check(typeof body === "function", "BAD_ARGUMENT", where, () => `body must be a function, got ${show(body)}.`, advice);
}

/** @throws OptError BAD_ARGUMENT for a promise in the place of a result */
export function checkSynchronous(where: string, result: unknown): void {
  check(
    typeof (result as { then?: unknown } | null | undefined)?.then !== "function",
    "BAD_ARGUMENT",
    where,
    () => "body must be synchronous, got a promise.",
    `Await before or after ${where}.`,
  );
}
