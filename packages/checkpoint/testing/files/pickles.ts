/** Writes small pickles, for tests: plain values, and the names and calls that other systems put into theirs. */

export class Name {
  constructor(
    readonly module: string,
    readonly attribute: string,
  ) {}
}

export class Call {
  constructor(
    readonly callable: Name,
    readonly args: readonly unknown[],
    readonly state?: unknown,
  ) {}
}

export class Tuple {
  readonly items: readonly unknown[];
  constructor(...items: readonly unknown[]) {
    this.items = items;
  }
}

export class Persistent {
  constructor(readonly id: unknown) {}
}

/** A list that holds itself. */
export class Recursive {}

/** A pickle of protocol 4 (2 without STACK_GLOBAL and bytes). */
export function pickleOf(value: unknown, protocol: 2 | 4 = 4): Uint8Array {
  const parts: (number | Uint8Array)[] = [0x80, protocol];
  write(value, parts, protocol);
  parts.push(0x2e);
  return Buffer.concat(parts.map((part) => (typeof part === "number" ? Uint8Array.of(part) : part)));
}

function write(value: unknown, out: (number | Uint8Array)[], protocol: 2 | 4): void {
  const all = (items: Iterable<unknown>): void => {
    for (const item of items) write(item, out, protocol);
  };
  if (value === null || value === undefined) out.push(0x4e);
  else if (typeof value === "boolean") out.push(value ? 0x88 : 0x89);
  else if (typeof value === "number") out.push(...numberOps(value));
  else if (typeof value === "string") out.push(0x58, uint32(Buffer.byteLength(value)), Buffer.from(value));
  else if (value instanceof Uint8Array) out.push(0x42, uint32(value.length), value);
  else if (value instanceof Name) {
    if (protocol === 2) out.push(0x63, Buffer.from(`${value.module}\n${value.attribute}\n`));
    else {
      all([value.module, value.attribute]);
      out.push(0x93);
    }
  } else if (value instanceof Recursive) {
    out.push(0x5d, 0x71, 0, 0x68, 0, 0x61);
  } else if (value instanceof Tuple) {
    out.push(0x28);
    all(value.items);
    out.push(0x74);
  } else if (value instanceof Call) {
    all([value.callable, new Tuple(...value.args)]);
    out.push(0x52);
    if (value.state === undefined) return;
    all([value.state]);
    out.push(0x62);
  } else if (value instanceof Persistent) {
    all([value.id]);
    out.push(0x51);
  } else if (Array.isArray(value)) {
    out.push(0x5d, 0x28);
    all(value);
    out.push(0x65);
  } else {
    out.push(0x7d, 0x28);
    for (const pair of value instanceof Map ? value : Object.entries(value as object)) all(pair);
    out.push(0x75);
  }
}

function numberOps(value: number): (number | Uint8Array)[] {
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 31) {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32LE(value);
    return [0x4a, bytes];
  }
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return [0x47, bytes];
}

function uint32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
