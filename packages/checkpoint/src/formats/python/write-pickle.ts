/**
 * Writes pickles of protocol 2: plain values, and the few calls that a reader needs to build tensors. Only the names that its callers
 * spell out get into a file. Source: CPython's pickletools.
 */
import { OP } from "./opcodes";

export class PickleWriter {
  #bytes = new Uint8Array(1024);
  #length = 0;

  constructor() {
    this.#put(OP.PROTO, 2);
  }

  /** The pickle as it is, ended. */
  finish(): Uint8Array {
    this.#put(OP.STOP);
    return this.#bytes.slice(0, this.#length);
  }

  none(): void {
    this.#put(OP.NONE);
  }

  boolean(value: boolean): void {
    this.#put(value ? OP.NEWTRUE : OP.NEWFALSE);
  }

  float(value: number): void {
    this.#room(9);
    this.#put(OP.BINFLOAT);
    new DataView(this.#bytes.buffer).setFloat64(this.#length, value, false);
    this.#length += 8;
  }

  integer(value: number | bigint): void {
    if (value >= 0 && value < 256) this.#put(OP.BININT1, Number(value));
    else if (value >= -(2 ** 31) && value < 2 ** 31) {
      this.#put(OP.BININT);
      this.#int32(Number(value));
    } else this.#long(BigInt(value));
  }

  text(value: string): void {
    const bytes = new TextEncoder().encode(value);
    this.#put(OP.BINUNICODE);
    this.#int32(bytes.length);
    this.#append(bytes);
  }

  list(items: Iterable<() => void>): void {
    this.#put(OP.EMPTY_LIST, OP.MARK);
    for (const write of items) write();
    this.#put(OP.APPENDS);
  }

  tuple(items: Iterable<() => void>): void {
    this.#put(OP.MARK);
    for (const write of items) write();
    this.#put(OP.TUPLE);
  }

  dict(entries: Iterable<readonly [key: () => void, value: () => void]>): void {
    this.#put(OP.EMPTY_DICT);
    this.items(entries);
  }

  /** Sets items on the dict that was written last. */
  items(entries: Iterable<readonly [key: () => void, value: () => void]>): void {
    this.#put(OP.MARK);
    for (const [key, value] of entries) {
      key();
      value();
    }
    this.#put(OP.SETITEMS);
  }

  /** A class or function by its module and name. */
  global(module: string, name: string): void {
    this.#put(OP.GLOBAL);
    this.#append(new TextEncoder().encode(`${module}\n${name}\n`));
  }

  /** What the callable gives for the arguments. */
  call(module: string, name: string, args: Iterable<() => void>): void {
    this.global(module, name);
    this.tuple(args);
    this.#put(OP.REDUCE);
  }

  /** An object of a class made without its constructor, and the state it is given. */
  object(module: string, name: string, state: () => void): void {
    this.global(module, name);
    this.#put(OP.EMPTY_TUPLE, OP.NEWOBJ);
    state();
    this.#put(OP.BUILD);
  }

  persistent(id: () => void): void {
    id();
    this.#put(OP.BINPERSID);
  }

  #long(value: bigint): void {
    const bytes: number[] = [];
    for (let rest = value; ; rest >>= 8n) {
      bytes.push(Number(BigInt.asUintN(8, rest)));
      // The last byte's highest bit is the sign.
      if ((rest >> 8n === 0n && (bytes.at(-1)! & 128) === 0) || (rest >> 8n === -1n && (bytes.at(-1)! & 128) !== 0))
        break;
    }
    this.#put(OP.LONG1, bytes.length, ...bytes);
  }

  #int32(value: number): void {
    this.#room(4);
    new DataView(this.#bytes.buffer).setInt32(this.#length, value, true);
    this.#length += 4;
  }

  #put(...bytes: readonly number[]): void {
    this.#append(Uint8Array.from(bytes));
  }

  #append(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #room(length: number): void {
    if (this.#length + length <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + length));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
