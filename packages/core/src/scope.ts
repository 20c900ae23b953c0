/** tidy: memory that is returned at the end of a block instead of by the garbage collector. */
import { OptError } from "./errors";

/** The mark by which tensors are known without importing their class. */
export const isTensor: unique symbol = Symbol.for("@opt/core.tensor");

/** What tidy gives back: tensors, of whichever copy of core. */
export interface Scoped {
  readonly [isTensor]: true;
  dispose(): void;
}

interface Scope {
  readonly made: Set<Scoped>;
  readonly outer: Scope | null;
}

let current: Scope | null = null;

/** @internal Puts a new tensor under the innermost tidy. */
export function track(tensor: Scoped): void {
  current?.made.add(tensor);
}

/** Takes a tensor out of every tidy: it lives until it is disposed. Parameters, gradients and optimizer state are kept so. */
export function keep<T extends Scoped>(tensor: T): T {
  for (let scope = current; scope !== null; scope = scope.outer) scope.made.delete(tensor);
  return tensor;
}

/**
 * Runs `body` and frees every tensor made inside, except what `body` returns (a tensor, or arrays and plain objects of them),
 * parameters, gradients and optimizer state.
 *
 * @throws OptError BAD_ARGUMENT if `body` is asynchronous: what it makes after its first await would be missed.
 * @example
 * const loss = tidy(() => { const loss = crossEntropy(model.forward(x), y); loss.backward(); return loss; });
 */
export function tidy<Result>(body: () => Result): Result {
  const outer = current;
  const made = new Set<Scoped>();
  current = { made, outer };
  let result: Result;
  try {
    result = body();
  } catch (error) {
    current = outer;
    for (const tensor of made) tensor.dispose();
    throw error;
  }
  current = outer;
  if (result instanceof Promise) {
    for (const tensor of made) tensor.dispose();
    throw new OptError(
      "BAD_ARGUMENT",
      "tidy",
      "body must be synchronous, got a promise.",
      "Await before or after tidy.",
    );
  }
  forEachTensor(result, (tensor) => {
    if (made.delete(tensor)) track(tensor);
  });
  for (const tensor of made) tensor.dispose();
  return result;
}

/** Calls `visit` for the tensors in a value: itself, or in arrays and plain objects. */
function forEachTensor(value: unknown, visit: (tensor: Scoped) => void): void {
  if (typeof value !== "object" || value === null) return;
  if (isTensor in value) visit(value as Scoped);
  else if (Array.isArray(value)) for (const item of value) forEachTensor(item, visit);
  else if (Object.getPrototypeOf(value) === Object.prototype)
    for (const item of Object.values(value)) forEachTensor(item, visit);
}
