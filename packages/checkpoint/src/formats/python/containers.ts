/** What Python's own containers hold, as pickles describe them. */
import { PickleCall, PickleTuple } from "./pickle-objects";

const DICTS = ["collections.OrderedDict", "collections.defaultdict", "collections.Counter"];

/** What a container holds, by key; undefined for anything else. */
export function childrenOf(value: unknown): Iterable<[unknown, unknown]> | undefined {
  if (value instanceof Map) return value;
  if (Array.isArray(value)) return value.entries();
  if (value instanceof PickleTuple) return value.items.entries();
  if (!(value instanceof PickleCall)) return undefined;
  if (!DICTS.includes(value.callable)) return undefined;
  // Counter(dict) and Python 2's OrderedDict([[key, value], ...]) carry their items as arguments.
  const given = value.args.find((arg) => arg instanceof Map || Array.isArray(arg));
  const items: [unknown, unknown][] = given instanceof Map ? [...given] : ((given ?? []) as unknown[]).flatMap(pairOf);
  return [...items, ...value.entries];
}

function pairOf(item: unknown): [unknown, unknown][] {
  const pair = item instanceof PickleTuple ? item.items : item;
  return Array.isArray(pair) && pair.length === 2 ? [[pair[0], pair[1]]] : [];
}
