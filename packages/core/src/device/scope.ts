/** tidy: memory that is returned at the end of a block instead of by the garbage collector. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { shared } from "../host/shared";
import { checkBody, checkSynchronous } from "../host/synchronous";

/** The mark by which tensors are known without importing their class. */
export const isTensor: unique symbol = Symbol.for("@opt/core.tensor");

/** What tidy gives back: tensors, of whichever copy of core. */
export interface Scoped {
  readonly [isTensor]: true;
  /** Made to be replaced by the next of its kind, see `replacing`. */
  isReplaceable?: boolean;
  dispose(): void;
}

interface Scope {
  readonly made: Set<Scoped>;
  readonly outer: Scope | null;
}

const scopes = /* @__PURE__ */ shared("scopes", () => ({ current: null as Scope | null }));

/** @internal Puts a new tensor under the innermost tidy. */
export function track(tensor: Scoped): void {
  scopes.current?.made.add(tensor);
}

/**
 * Takes a tensor out of every tidy: it lives until it is disposed. Parameters, gradients and optimizer state are kept so.
 *
 * @throws OptError BAD_ARGUMENT for what is no tensor
 */
export function keep<T extends Scoped>(tensor: T): T {
  check(isTensor in Object(tensor), "BAD_ARGUMENT", "keep", () => `must be a tensor, got ${show(tensor)}.`);
  tensor.isReplaceable = false;
  for (let scope = scopes.current; scope !== null; scope = scope.outer) scope.made.delete(tensor);
  return tensor;
}

const latest = new WeakMap<object, Scoped>();

/** @internal Where no tidy would free it, `result` lives until the next one for the same `owner`, unless it is kept. */
export function replacing<T extends Scoped>(owner: object, result: T): T {
  if (isTidied(result)) return result;
  const last = latest.get(owner);
  if (last?.isReplaceable) last.dispose();
  latest.set(owner, result);
  result.isReplaceable = true;
  return result;
}

/** @internal True if a tidy that runs would free it. */
export function isTidied(tensor: Scoped): boolean {
  for (let scope = scopes.current; scope !== null; scope = scope.outer) if (scope.made.has(tensor)) return true;
  return false;
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
  const { result, kept } = collect("tidy", body);
  for (const tensor of kept) track(tensor);
  return result;
}

/** @internal Frees what `body` made, but for what it returns: that is `kept`, under no tidy. */
export function collect<Result>(where: string, body: () => Result): { result: Result; kept: Scoped[] } {
  checkBody(where, body);
  const outer = scopes.current;
  const made = new Set<Scoped>();
  scopes.current = { made, outer };
  const kept: Scoped[] = [];
  try {
    const result = body();
    checkSynchronous(where, result);
    forEachTensor(result, (tensor) => {
      if (made.delete(tensor)) kept.push(tensor);
    });
    return { result, kept };
  } finally {
    scopes.current = outer;
    for (const tensor of made) tensor.dispose();
  }
}

/** Calls `visit` for the tensors in a value: itself, or in arrays and plain objects. */
function forEachTensor(value: unknown, visit: (tensor: Scoped) => void): void {
  if (typeof value !== "object" || value === null) return;
  if (isTensor in value) visit(value as Scoped);
  else if (Array.isArray(value)) for (const item of value) forEachTensor(item, visit);
  else if (Object.getPrototypeOf(value) === Object.prototype)
    for (const item of Object.values(value)) forEachTensor(item, visit);
}
