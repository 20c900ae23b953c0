/** tidy: memory that is returned at the end of a block instead of by the garbage collector. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { shared } from "../host/shared";
import { checkBody, checkSynchronous } from "../host/synchronous";
import { activeTracer } from "./tracer";

/** The mark by which tensors are known without importing their class. */
export const isTensor: unique symbol = Symbol.for("@opt/core.tensor");

/** What tidy gives back: tensors, of whichever copy of core. */
export interface Scoped {
  readonly [isTensor]: true;
  /** @internal Made to be replaced by the next of its kind, see `replacing`. */
  isReplaceable?: boolean;
  /** @internal What the tidy that frees it has made, and its place there. */
  made?: (Scoped | null)[] | null;
  /** @internal */
  order?: number;
  /** @internal A compiled function freed it, where `keep` is no cure. */
  isFreedByCompile?: boolean;
  /** @internal Leaves it to the garbage collector, where nobody disposes of it. */
  leave(): void;
  dispose(): void;
}

type ScopedList = (Scoped | null)[];

/** What the innermost tidy has made: in a list, where each knows its place. Sets would hash every result of every op. */
const scopes = /* @__PURE__ */ shared("tidies", () => ({ current: null as ScopedList | null }));

/** @internal Puts a new tensor under the innermost tidy, which holds it. Under none it can be dropped. */
export function track(tensor: Scoped): void {
  const made = scopes.current;
  tensor.made = made;
  if (made) tensor.order = made.push(tensor) - 1;
  else tensor.leave();
}

/** @internal Takes a tensor out of its tidy. False if it is under none. */
export function untrack(tensor: Scoped): boolean {
  const { made } = tensor;
  if (!made) return false;
  made[tensor.order!] = tensor.made = null;
  return true;
}

/**
 * Takes a tensor out of every tidy: it lives until it is disposed. Parameters, gradients and optimizer state are kept so.
 *
 * @throws OptError BAD_ARGUMENT for what is no tensor
 */
export function keep<T extends Scoped>(tensor: T): T {
  check(isTensor in Object(tensor), "BAD_ARGUMENT", "keep", () => `must be a tensor, got ${show(tensor)}.`);
  tensor.isReplaceable = false;
  if (untrack(tensor)) tensor.leave();
  return tensor;
}

const latest = new WeakMap<object, Scoped>();

/** @internal Where no tidy would free it, `result` lives until the next one for the same `owner`, unless it is kept. */
export function replacing<T extends Scoped>(owner: object, result: T): T {
  if (result.made) return result;
  const last = latest.get(owner);
  if (last?.isReplaceable) last.dispose();
  latest.set(owner, result);
  result.isReplaceable = true;
  return result;
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
  const made: ScopedList = [];
  scopes.current = made;
  const kept: Scoped[] = [];
  try {
    const result = body();
    checkSynchronous(where, result);
    forEachTensor(result, (tensor) => {
      if (tensor.made === made && untrack(tensor)) kept.push(tensor);
    });
    return { result, kept };
  } finally {
    scopes.current = outer;
    const isCompiled = activeTracer() !== null;
    for (const tensor of made) {
      if (tensor === null) continue;
      if (isCompiled) tensor.isFreedByCompile = true;
      tensor.dispose();
    }
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
