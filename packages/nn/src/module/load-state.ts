/** Loading a state: what fits is copied into a module's tensors. */
import { check, checkNotSummary, checkOptions, show, Tensor } from "@opt/core";

/** Values by dotted name: PyTorch's `state_dict`, for checkpoints of both worlds. */
export type StateDict = Record<string, Tensor>;

/** Names that a state and a module do not share. */
export interface Misfit {
  readonly missing: string[];
  readonly unexpected: string[];
}

/** As `Module.loadStateDict`, of the tensors that `tensorsOf` finds. */
export function loadState(
  where: string,
  tensorsOf: () => readonly [string, Tensor][],
  state: Readonly<Record<string, Tensor | undefined>>,
  options: { readonly strict?: boolean },
): Misfit {
  checkOptions(where, options, { strict: "boolean" });
  const { strict = true } = options;
  checkState(where, state);
  const given = new Map(Object.entries(state).filter(([, value]) => value !== undefined));
  for (const [name, value] of given) checkNotSummary(where, name, value);
  const own = new Map(tensorsOf());
  if (own.size > 0) checkNames(where, own, given, strict);
  const loadedTensors = new Set([...own].flatMap(([name, tensor]) => (given.has(name) ? tensor : [])));
  const missing = [...own].flatMap(([name, tensor]) => (loadedTensors.has(tensor) ? [] : name));
  const unexpected = [...given.keys()].filter((name) => !own.has(name));
  const unfit = [...misfits(own, given)];
  const names = strict
    ? [...missing.map((name) => `${name} is missing`), ...unexpected.map((name) => `${name} is unexpected`)]
    : [];
  const problems = [...names, ...unfit];
  check(
    problems.length === 0,
    "BAD_STATE",
    where,
    () => `the state must fit the module, got: ${problems.join("; ")}.`,
    unfit.length === 0
      ? "Build the module that was saved, or pass { strict: false }."
      : "Build the module with the sizes it was saved with, or delete these names from the state and pass { strict: false }.",
  );
  const loaded = [...own].filter(([name]) => given.has(name));
  const values: Tensor[] = [];
  try {
    // What can fail comes before the first change.
    for (const [name, tensor] of loaded) {
      const source = given.get(name)!.detach();
      values.push(source);
      values.push(source.to(tensor.device));
    }
    for (const [i, [, tensor]] of loaded.entries()) tensor.set(values[2 * i + 1]!);
  } finally {
    for (const value of values) value.dispose();
  }
  return { missing, unexpected };
}

/** Checks that a state has tensors by name. Otherwise all names would be missing, silently where that is allowed. @throws OptError BAD_STATE */
function checkState(where: string, state: unknown): asserts state is StateDict {
  const isObject = typeof state === "object" && state !== null;
  const isPromise = isObject && "then" in state && typeof state.then === "function";
  const isList = Array.isArray(state) || state instanceof Map || state instanceof Tensor;
  const { tensors } = Object(state) as { readonly tensors?: unknown };
  const isWhole = typeof tensors === "object" && tensors !== null && !(tensors instanceof Tensor);
  const advice = isPromise ? "Await it." : isWhole ? "Pass its .tensors." : "{ name: tensor }";
  check(
    isObject && !isPromise && !isList && !isWhole,
    "BAD_STATE",
    where,
    () => `the state must be tensors by name, got ${isWhole ? "an object that has them in .tensors" : show(state)}.`,
    advice,
  );
}

/** Names the cure where no name of the module is in the state. Not strict, nothing would be loaded. @throws OptError BAD_STATE */
function checkNames(
  where: string,
  own: ReadonlyMap<string, Tensor>,
  given: ReadonlyMap<string, unknown>,
  strict: boolean,
): void {
  if ([...own.keys()].some((name) => given.has(name))) return;
  const prefix = prefixOf(own, given);
  if (prefix === undefined) {
    check(
      strict,
      "BAD_STATE",
      where,
      () => `the state must have a name of the module (${some(own)}), got ${some(given) || "no name"}.`,
      "Rename them.",
    );
    return;
  }
  const problem = () =>
    `the state must have the module's names, got names that begin with "${prefix}": ${some(given)}.`;
  const names = `Object.keys(model.stateDict()).map((name) => [name, state["${prefix}" + name]])`;
  check(false, "BAD_STATE", where, problem, `model.loadStateDict(Object.fromEntries(${names}))`);
}

/** What stands before most names of the module: `module.` of PyTorch's DistributedDataParallel, `state_dict.`. */
function prefixOf(own: ReadonlyMap<string, Tensor>, given: ReadonlyMap<string, unknown>): string | undefined {
  const counts = new Map<string, number>();
  for (const name of given.keys()) {
    for (let end = name.indexOf(".") + 1; end > 0; end = name.indexOf(".", end) + 1) {
      const prefix = name.slice(0, end);
      if (own.has(name.slice(end))) counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
    }
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}

function some(names: ReadonlyMap<string, unknown>): string {
  return [...names.keys()].slice(0, 3).join(", ") + (names.size > 3 ? ", ..." : "");
}

/** Which values do not fit the tensors of their names. */
function* misfits(own: ReadonlyMap<string, Tensor>, given: ReadonlyMap<string, unknown>): Generator<string> {
  for (const [name, tensor] of own) {
    const value = given.get(name);
    if (value === undefined) continue;
    if (!(value instanceof Tensor)) {
      yield `${name} is not a tensor`;
    } else if (value.isDisposed || tensor.isDisposed) {
      yield `${name} was disposed`;
    } else if (String(value.shape) !== String(tensor.shape) || value.shape.length !== tensor.shape.length) {
      yield `${name} has shape [${value.shape}] instead of [${tensor.shape}]`;
    }
  }
}
