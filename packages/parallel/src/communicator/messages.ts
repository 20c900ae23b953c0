/** Small plain values between the ranks of a group: JSON after its length. */
import { check, show } from "@opt/core";
import type { Group } from "./group";
import type { Operation } from "./operation";

const LENGTH = 8;

function written(value: unknown): { length: Uint8Array; text: Uint8Array } {
  const text = new TextEncoder().encode(JSON.stringify(value ?? null));
  const length = new Uint8Array(LENGTH);
  new DataView(length.buffer).setFloat64(0, text.byteLength);
  return { length, text };
}

/** JSON would make null of NaN, and {} of a Map: the others would go on with that. @throws OptError BAD_ARGUMENT */
export function checkPlain(where: string, value: unknown): void {
  const isObject = typeof value === "object" && value !== null;
  const prototype = isObject ? Object.getPrototypeOf(value) : null;
  const isList = isObject && (Array.isArray(value) || prototype === Object.prototype || prototype === null);
  const isPlain = ["string", "boolean", "undefined"].includes(typeof value) || value === null || Number.isFinite(value);
  check(
    isPlain || isList,
    "BAD_ARGUMENT",
    where,
    () => `values travel as JSON, got ${show(value)}.`,
    "Send other numbers in a tensor.",
  );
  if (isList) for (const each of Object.values(value)) checkPlain(where, each);
}

async function sendJson(operation: Operation, to: number, value: unknown): Promise<void> {
  const { length, text } = written(value);
  await operation.all([operation.send(to, 0, length), operation.send(to, 1, text)]);
}

async function receiveJson<T>(operation: Operation, from: number): Promise<T> {
  const length = new Uint8Array(LENGTH);
  await operation.receive(from, 0, length);
  const text = new Uint8Array(new DataView(length.buffer).getFloat64(0));
  await operation.all([operation.receive(from, 1, text)]);
  return JSON.parse(new TextDecoder().decode(text));
}

/** Rank 0 gets every rank's value. */
export async function gatherJson<T>(group: Group, operation: Operation, value: T): Promise<T[] | undefined> {
  if (group.rank !== 0) {
    await sendJson(operation, 0, value);
    return undefined;
  }
  const others = Array.from({ length: group.size - 1 }, (_, i) => receiveJson<T>(operation, i + 1));
  // As if it had travelled, too.
  return [JSON.parse(JSON.stringify(value ?? null)), ...(await Promise.all(others))];
}

/** Every rank gets the root's value. */
export async function broadcastJson<T>(
  group: Group,
  operation: Operation,
  value: T | undefined,
  root: number,
): Promise<T> {
  const { from, to } = treeOf(group, root);
  const known = from === undefined ? value : await receiveJson<T>(operation, from);
  await operation.all(to.map((child) => sendJson(operation, child, known)));
  return known as T;
}

/** Every rank gets every rank's value. */
export async function allGatherJson<T>(group: Group, where: string, value: T): Promise<T[]> {
  // Both begin now: what the program begins next comes after them on every rank.
  const [up, down] = [group.begin(where, { what: where }), group.begin(where, { what: where })];
  return broadcastJson<T[]>(group, down, await gatherJson(group, up, value), 0);
}

/** The binomial tree from a root: who sends to this rank, and to whom this rank sends, the farthest first. */
export function treeOf({ rank, size }: Group, root: number): { from: number | undefined; to: number[] } {
  const own = (rank - root + size) % size;
  const actual = (relative: number) => (relative + root) % size;
  // A rank hears from the one whose number lacks its lowest bit.
  const lowest = own === 0 ? 2 ** Math.ceil(Math.log2(size)) : own & -own;
  const to: number[] = [];
  for (let bit = lowest / 2; bit >= 1; bit /= 2) if (own + bit < size) to.push(actual(own + bit));
  return { from: own === 0 ? undefined : actual(own - lowest), to };
}
