/** Writes pickles of protocol 2: plain values, and the names and calls that callers spell out. Source: CPython's pickletools. */
import {
  PickleCall,
  PickleFloat,
  PickleGlobal,
  PicklePersistent,
  PickleTuple,
} from "../../formats/python/pickle-objects";
import { OP } from "../../formats/python/pickle-opcodes";

/** The pickle of null, booleans, numbers, bigints, texts, lists, Maps and pickle objects. */
export function writePickle(value: unknown): Uint8Array {
  const writer = new PickleWriter();
  writer.write(value);
  return writer.finish();
}

const UTF8 = new TextEncoder();

class PickleWriter {
  #bytes = new Uint8Array(1024);
  #length = 0;
  readonly #globals = new Map<string, number>();

  constructor() {
    this.#put(OP.PROTO, 2);
  }

  finish(): Uint8Array {
    this.#put(OP.STOP);
    return this.#bytes.slice(0, this.#length);
  }

  write(value: unknown): void {
    if (value === null) this.#put(OP.NONE);
    else if (typeof value === "boolean") this.#put(value ? OP.NEWTRUE : OP.NEWFALSE);
    else if (typeof value === "string") this.#text(OP.BINUNICODE, value);
    else if (typeof value === "bigint" || Number.isInteger(value)) this.#integer(value as number | bigint);
    else if (typeof value === "number") this.#float(value);
    else if (value instanceof PickleFloat) this.#float(value.value);
    else if (Array.isArray(value)) {
      this.#put(OP.EMPTY_LIST);
      this.#marked(value, OP.APPENDS);
    } else if (value instanceof PickleTuple) this.#marked(value.items, OP.TUPLE);
    else if (value instanceof Map) {
      this.#put(OP.EMPTY_DICT);
      this.#marked([...value].flat(1), OP.SETITEMS);
    } else if (value instanceof PickleGlobal) this.#global(value.name);
    else if (value instanceof PickleCall) this.#call(value);
    else if (value instanceof PicklePersistent) {
      this.write(value.id);
      this.#put(OP.BINPERSID);
    } else throw new TypeError(`no pickle for ${value}`);
  }

  #marked(items: Iterable<unknown>, opcode: number): void {
    this.#put(OP.MARK);
    for (const item of items) this.write(item);
    this.#put(opcode);
  }

  /** With a state: an object made without its constructor, which is given the state. */
  #call({ callable, args, state, entries }: PickleCall): void {
    this.#global(callable);
    if (state === undefined) {
      this.#marked(args, OP.TUPLE);
      this.#put(OP.REDUCE);
    } else {
      this.#put(OP.EMPTY_TUPLE, OP.NEWOBJ);
      this.write(state);
      this.#put(OP.BUILD);
    }
    if (entries.size > 0) this.#marked([...entries].flat(1), OP.SETITEMS);
  }

  /** Recalled from its second time on. */
  #global(name: string): void {
    const known = this.#globals.get(name);
    if (known !== undefined) {
      this.#put(OP.BINGET, known);
      return;
    }
    const dot = name.lastIndexOf(".");
    this.#put(OP.GLOBAL);
    this.#append(UTF8.encode(`${name.slice(0, dot)}\n${name.slice(dot + 1)}\n`));
    if (this.#globals.size > 255) return;
    this.#put(OP.BINPUT, this.#globals.size);
    this.#globals.set(name, this.#globals.size);
  }

  #float(value: number): void {
    this.#put(OP.BINFLOAT);
    this.#room(8);
    new DataView(this.#bytes.buffer).setFloat64(this.#length, value, false);
    this.#length += 8;
  }

  #integer(value: number | bigint): void {
    if (value >= 0 && value < 256) this.#put(OP.BININT1, Number(value));
    else if (value >= -(2 ** 31) && value < 2 ** 31) {
      this.#put(OP.BININT);
      this.#int32(Number(value));
    } else this.#long(BigInt(value));
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

  #text(opcode: number, text: string): void {
    const bytes = UTF8.encode(text);
    this.#put(opcode);
    this.#int32(bytes.length);
    this.#append(bytes);
  }

  #put(...bytes: readonly number[]): void {
    this.#room(bytes.length);
    for (const byte of bytes) this.#bytes[this.#length++] = byte;
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
