/** TorchScript archives (`torch.jit.save`): the attributes of a module and those inside of it. Their code is never run. */
import { basename } from "../../stores/path";
import { wholeTensors } from "../bytes/foreign-tensor";
import { formatReader } from "../bytes/reader";
import { PickleCall, PickleTuple } from "../python/pickle-objects";
import { openZip } from "../zip/read";
import { namedIn, readArchived } from "./read";
import { TORCH_PICKLE } from "./tensors";

/** Classes of the archive's own code. */
const isOwn = (name: string) => name.startsWith("__torch__.");
/** Typed lists and dicts: functions that return what they are given. */
const isTyped = (name: string) => name.startsWith("torch.jit._pickle.");
const GLOBALS = { has: (name: string) => isOwn(name) || isTyped(name) || TORCH_PICKLE.globals.has(name) };

export const torchScriptReader = formatReader("TorchScript", async ({ path, file, options }) => {
  const source = await file();
  const members = await openZip(source);
  const read = async (kind: string) => {
    const pickled = await readArchived(source, members, options, kind, { ...TORCH_PICKLE, globals: GLOBALS });
    return namedIn(source, { ...pickled, root: withoutClasses(pickled.root) }, options);
  };
  const [{ tensors, values, unreadable, skipped }, constants] = [await read("data"), await read("constants")];
  const apart = <T>(named: Iterable<readonly [string, T]>) =>
    Array.from(named, ([name, value]) => [`constants.${name}`, value] as const);
  return {
    tensors: wholeTensors([...tensors, ...apart(constants.tensors)], basename(path)),
    values: { ...values, ...Object.fromEntries(apart(Object.entries(constants.values))) },
    unreadable: new Map([...unreadable, ...apart(constants.unreadable)]),
    skipped: [...skipped, ...constants.skipped.map(({ name, what }) => ({ name: `constants.${name}`, what }))],
  };
});

/** The state of an object of the archive's classes, or any other value as it is. */
function stateOf(value: unknown): unknown {
  // One object may be the state of another, also in a circle.
  for (let depth = 0; depth < 100; depth++) {
    if (!(value instanceof PickleCall)) return value;
    if (isOwn(value.callable)) value = value.state;
    else if (isTyped(value.callable)) value = value.args[0];
    else return value;
  }
  return undefined;
}

/** The objects of a pickle, with states in place of modules. */
function withoutClasses(root: unknown): unknown {
  const whole = stateOf(root);
  const left = [whole];
  const seen = new Set<unknown>();
  while (left.length > 0) {
    const value = left.pop();
    if (seen.has(value)) continue;
    seen.add(value);
    const items = value instanceof PickleTuple ? (value.items as unknown[]) : value;
    if (!(items instanceof Map || Array.isArray(items))) continue;
    if (items instanceof Map) items.delete("_is_full_backward_hook");
    for (const [key, item] of items.entries()) {
      const state = stateOf(item);
      if (items instanceof Map) items.set(key, state);
      else items[key as number] = state;
      left.push(state);
    }
  }
  return whole;
}
