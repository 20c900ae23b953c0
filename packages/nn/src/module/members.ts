/** What a module holds: its properties, and what lies in their arrays, maps and plain objects, by name. */
import { check, Tensor } from "@opt/core";

/** "blocks.0" for an item of an array or set, "heads.price" for an entry of a map or plain object. */
export function* members(where: string, holder: object): Generator<[string, unknown]> {
  for (const [name, value] of Object.entries(holder)) yield* inside(where, name, value, []);
}

function* inside(
  where: string,
  name: string,
  value: unknown,
  holders: readonly object[],
): Generator<[string, unknown]> {
  const entries = entriesOf(value);
  if (entries === undefined) {
    yield [name, value];
    return;
  }
  const holder = value as object;
  check(
    !holders.includes(holder),
    "BAD_ARGUMENT",
    where,
    () => `${name} must not hold itself.`,
    "What is no part of the module's state belongs into a #private field.",
  );
  for (const [key, item] of entries) yield* inside(where, `${name}.${String(key)}`, item, [...holders, holder]);
}

function entriesOf(value: unknown): Iterable<readonly [unknown, unknown]> | undefined {
  if (typeof value !== "object" || value === null || value instanceof Tensor) return undefined;
  if (Array.isArray(value) || value instanceof Map) return value.entries();
  if (value instanceof Set) return [...value].entries();
  return Object.getPrototypeOf(value) === Object.prototype ? Object.entries(value) : undefined;
}
