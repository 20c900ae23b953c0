/** Objects of classes that are no plain data: they stay inert, and only what tensors need is taken from them. */
import { childrenOf } from "./containers";
import { PickleCall, PickleGlobal, PickleSet, PickleTuple } from "./pickle-objects";

/** What stands where a foreign object is, or undefined for data. */
export function foreignName(value: unknown): string | undefined {
  if (value instanceof PickleGlobal) return value.isForeign ? value.name : undefined;
  return value instanceof PickleCall && value.isForeign ? value.callable : undefined;
}

type Entry = readonly [key: unknown, value: unknown];

/** The parts of a module as its `state_dict()` has them, by their whole names; undefined for another object. Source: `torch.nn.Module`. */
export function moduleEntries(value: unknown, depth = 0): Entry[] | undefined {
  const state = value instanceof PickleCall && value.isForeign && value.state instanceof Map ? value.state : undefined;
  const [parameters, buffers, modules] = ["_parameters", "_buffers", "_modules"].map((key) =>
    childrenOf(state?.get(key)),
  );
  if (!state || !parameters || !buffers || !modules || depth > DEEPEST) return undefined;
  const kept = state.get("_non_persistent_buffers_set");
  const absent = kept instanceof PickleSet ? kept.items : kept instanceof PickleCall ? [...setItems(kept)] : [];
  const inside = [...modules].flatMap(([name, module]) =>
    (moduleEntries(module, depth + 1) ?? []).map(([key, part]): Entry => [`${name}.${key}`, part]),
  );
  const own = [...parameters, ...[...buffers].filter(([name]) => !absent.includes(name))];
  return [...own.filter(([, part]) => part !== null), ...inside];
}

const DEEPEST = 50;

const setItems = ({ args: [first], items }: PickleCall) => [...(Array.isArray(first) ? first : []), ...items];

/** The attributes and items of an object of another class; of its arguments those that may hold tensors. */
export function foreignEntries({ args, state, entries, items }: PickleCall): Entry[] {
  const states = state instanceof PickleTuple ? state.items : [state];
  const attributes = states.flatMap((each): Entry[] =>
    each instanceof Map ? [...each] : isInner(each) ? [["state", each]] : [],
  );
  const inner = args.map((arg, i): Entry => [i, arg]).filter(([, arg]) => isInner(arg));
  const all = new Map<unknown, unknown>();
  for (const [key, value] of [...attributes, ...entries, ...items.entries(), ...inner])
    if (!all.has(key)) all.set(key, value);
  return [...all];
}

const isInner = (value: unknown) =>
  value instanceof PickleCall ? value.callable !== "_codecs.encode" : childrenOf(value) !== undefined;

/** Names that attackers call. Nothing runs here, but where the file was written, or in PyTorch, it would. */
const HOSTILE =
  /^(os|posix|nt|subprocess|shutil|pty|runpy|importlib|ctypes|webbrowser)\.|^commands\.get|^code\.(interact|Interactive)|^(builtins|__builtin__)\.(eval|exec|execfile|compile|open|__import__|input|breakpoint|apply)$/;

export const isHostile = (name: string): boolean => HOSTILE.test(name);
