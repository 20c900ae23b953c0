/** Pickle is a program. This reader runs the part that builds data, and only notes what the rest would have called. */
import { OptError } from "@opt/core";
import type { ImportOptions } from "../../format/source";
import { ByteCursor } from "../bytes/byte-cursor";
import type { ByteSource } from "../bytes/byte-source";

/** A name that the pickle refers to (a class or function): noted, never looked up. */
export class PickleGlobal {
  constructor(readonly name: string) {}
}

/** What would have been a call: its callable and arguments, and what was built onto the result. Nothing ran. */
export class PickleCall {
  /** The state given to `__setstate__` or `__dict__`. */
  state: unknown;
  /** Items set on the result, when it is a kind of dict. */
  readonly entries = new Map<unknown, unknown>();
  /** Items appended to the result, when it is a kind of list or set. */
  readonly items: unknown[] = [];
  constructor(
    readonly callable: string,
    readonly args: readonly unknown[],
  ) {}
}

/** An object that lies outside of the pickle, by its id. */
export class PicklePersistent {
  constructor(readonly id: unknown) {}
}

export class PickleTuple {
  constructor(readonly items: readonly unknown[]) {}
}

export class PickleSet {
  readonly items: unknown[] = [];
}

/** A float that JavaScript would take for an integer: `1.0` is no `1` in Python, and is written back as it was. */
export class PickleFloat {
  constructor(readonly value: number) {}
}

/** A long string or bytes object that stays in the source until it is asked for. */
export class PickleRange {
  constructor(
    readonly kind: "bytes" | "text",
    readonly offset: number,
    readonly length: number,
  ) {}
}

export interface PickleLimits {
  /** Names (`module.name`) that may occur; any other is refused. */
  readonly globals: ReadonlySet<string>;
  /** Called with each persistent id; without it they may not occur. */
  readonly persistent?: (id: PicklePersistent) => void;
  /** About how many bytes the objects may take in memory; 192 MiB without it. */
  readonly memory?: number;
}

// Beyond these lengths a payload stays where it is; integers longer than any counter are no data of ours.
const LONG_PAYLOAD = 1024;
const LONG_TEXT = 64 * 1024;
const LONGEST_INTEGER = 256;

const MARK = Symbol("mark");

// What values take in memory, about: an opcode of one byte may make an object of hundreds. Real pickles take 30 times their length.
const OBJECT_COST = 160;
const DICT_COST = 288;
const MEMO_COST = 48;
const VALUE_COST = 16;
const FREE_COST = 64 * 1024 * 1024;
const COST_PER_BYTE = 48;
const COST_OF_TENSOR = 8 * 1024;
const HIGHEST_COST = 192 * 1024 * 1024;

/** Who allows more tensors than usual allows what describes them, too. */
export function pickleMemory({ maxTensors }: ImportOptions): { memory?: number } {
  return maxTensors === undefined ? {} : { memory: Math.max(HIGHEST_COST, maxTensors * COST_OF_TENSOR) };
}

/**
 * Reads one pickle (protocols 0 to 5, the opcodes that builders of plain data use) and leaves the cursor behind it.
 * Throws REFUSED for a global that is not in `limits.globals`, CORRUPT for what is no pickle. Source: CPython's pickletools.
 */
export async function readPickle(cursor: ByteCursor, limits: PickleLimits): Promise<unknown> {
  const machine = new PickleMachine(cursor, limits);
  for (;;) {
    if (!cursor.has(16)) await cursor.need(Math.min(16, Math.max(1, cursor.remaining)));
    const stopped = machine.step();
    if (stopped === true || (stopped !== false && (await stopped))) return machine.result;
  }
}

/** The pickle at the start of a source. */
export function readPickleOf(source: ByteSource, limits: PickleLimits): Promise<unknown> {
  return readPickle(new ByteCursor(source), limits);
}

class PickleMachine {
  result: unknown;
  readonly #cursor: ByteCursor;
  readonly #limits: PickleLimits;
  #budget: number;
  readonly #stack: unknown[] = [];
  readonly #memo = new Map<number, unknown>();
  readonly #text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  readonly #latin1 = new TextDecoder("latin1");

  constructor(cursor: ByteCursor, limits: PickleLimits) {
    this.#cursor = cursor;
    this.#limits = limits;
    this.#budget = Math.min(limits.memory ?? HIGHEST_COST, FREE_COST + COST_PER_BYTE * cursor.source.byteLength);
  }

  /** Runs one opcode; true (or a promise of it) when it was STOP. Only long payloads wait. */
  step(): boolean | Promise<boolean> {
    const cursor = this.#cursor;
    const opcode = cursor.uint8();
    switch (opcode) {
      case 0x80: // PROTO
        if (cursor.uint8() > 5) throw cursor.corrupt("the pickle has a protocol above 5");
        return false;
      case 0x95: // FRAME
        cursor.length64();
        return false;
      case 0x2e: // STOP
        this.result = this.#pop();
        return true;
      case 0x28: // MARK
        return this.#push(MARK);
      case 0x30: // POP
        this.#stack.pop();
        return false;
      case 0x31: // POP_MARK
        this.#popToMark();
        return false;
      case 0x32: // DUP
        return this.#push(this.#top());
      case 0x4e: // NONE
        return this.#push(null);
      case 0x88: // NEWTRUE
        return this.#push(true);
      case 0x89: // NEWFALSE
        return this.#push(false);
      case 0x4a: // BININT
        return this.#push(cursor.int32());
      case 0x4b: // BININT1
        return this.#push(cursor.uint8());
      case 0x4d: // BININT2
        return this.#push(cursor.uint16());
      case 0x47: // BINFLOAT
        return this.#push(float(cursor.float64BigEndian()));
      case 0x8a: // LONG1
        return this.#long(cursor.uint8());
      case 0x8b: // LONG4
        return this.#long(cursor.uint32());
      case 0x49: // INT
      case 0x4c: // LONG
        return this.#line().then((line) => this.#push(this.#decimal(line)));
      case 0x46: // FLOAT
        return this.#line().then((line) => this.#push(float(Number(line))));
      case 0x8c: // SHORT_BINUNICODE
        return this.#string(cursor.uint8());
      case 0x58: // BINUNICODE
        return this.#string(cursor.uint32());
      case 0x8d: // BINUNICODE8
        return this.#string(cursor.length64());
      case 0x43: // SHORT_BINBYTES
        return this.#bytes(cursor.uint8());
      case 0x42: // BINBYTES
        return this.#bytes(cursor.uint32());
      case 0x8e: // BINBYTES8
      case 0x96: // BYTEARRAY8
        return this.#bytes(cursor.length64());
      case 0x55: // SHORT_BINSTRING, what Python 2 wrote for str
        return this.#byteString(cursor.uint8());
      case 0x54: // BINSTRING
        return this.#byteString(cursor.uint32());
      case 0x7d: // EMPTY_DICT
        return this.#push(new Map());
      case 0x5d: // EMPTY_LIST
        return this.#push([]);
      case 0x29: // EMPTY_TUPLE
        return this.#push(new PickleTuple([]));
      case 0x8f: // EMPTY_SET
        return this.#push(new PickleSet());
      case 0x85: // TUPLE1
      case 0x86: // TUPLE2
      case 0x87: // TUPLE3
        return this.#push(new PickleTuple(this.#popMany(opcode - 0x84)));
      case 0x74: // TUPLE
        return this.#push(new PickleTuple(this.#popToMark()));
      case 0x6c: // LIST
        return this.#push(this.#popToMark());
      case 0x64: // DICT
        return this.#setItems(this.#popToMark(), new Map(), true);
      case 0x91: // FROZENSET
        return this.#frozenSet(this.#popToMark());
      case 0x73: // SETITEM
        return this.#setItems(this.#popMany(2), this.#top());
      case 0x75: // SETITEMS
        return this.#setItems(this.#popToMark(), this.#top());
      case 0x61: // APPEND
        return this.#append(this.#popMany(1), this.#top());
      case 0x65: // APPENDS
      case 0x90: // ADDITEMS
        return this.#append(this.#popToMark(), this.#top());
      case 0x71: // BINPUT
        return this.#put(cursor.uint8());
      case 0x72: // LONG_BINPUT
        return this.#put(cursor.uint32());
      case 0x94: // MEMOIZE
        return this.#put(this.#memo.size);
      case 0x68: // BINGET
        return this.#get(cursor.uint8());
      case 0x6a: // LONG_BINGET
        return this.#get(cursor.uint32());
      case 0x63: // GLOBAL
        return this.#line().then(async (module) => this.#global(module, await this.#line()));
      case 0x93: {
        // STACK_GLOBAL
        const [module, name] = this.#popMany(2);
        return this.#global(module, name);
      }
      case 0x52: // REDUCE
      case 0x81: // NEWOBJ
        return this.#call();
      case 0x62: // BUILD
        return this.#build();
      case 0x51: // BINPERSID
        return this.#persistent(new PicklePersistent(this.#pop()));
      default:
        throw cursor.corrupt(`pickle opcode 0x${opcode.toString(16).padStart(2, "0")} is not one that data needs`);
    }
  }

  #push(value: unknown): false {
    this.#spend(
      value instanceof Map ? DICT_COST : typeof value === "object" && value !== null ? OBJECT_COST : VALUE_COST,
    );
    this.#stack.push(value);
    return false;
  }

  #spend(cost: number): void {
    this.#budget -= cost;
    if (this.#budget < 0) throw this.#cursor.corrupt("the pickle holds too many objects for its length");
  }

  #top(): unknown {
    const value = this.#stack.at(-1);
    if (value === undefined || value === MARK) throw this.#cursor.corrupt("the pickle takes from an empty stack");
    return value;
  }

  #pop(): unknown {
    const value = this.#top();
    this.#stack.pop();
    return value;
  }

  #popMany(count: number): unknown[] {
    const items = this.#stack.splice(Math.max(0, this.#stack.length - count));
    if (items.length < count || items.includes(MARK))
      throw this.#cursor.corrupt("the pickle takes from an empty stack");
    return items;
  }

  #popToMark(): unknown[] {
    const mark = this.#stack.lastIndexOf(MARK);
    if (mark < 0) throw this.#cursor.corrupt("the pickle closes what it never opened");
    const items = this.#stack.splice(mark + 1);
    this.#stack.pop();
    return items;
  }

  #put(index: number): false {
    this.#spend(MEMO_COST);
    this.#memo.set(index, this.#top());
    return false;
  }

  #get(index: number): false {
    const value = this.#memo.get(index);
    if (value === undefined) throw this.#cursor.corrupt(`the pickle recalls memo ${index}, which it never stored`);
    this.#spend(VALUE_COST);
    this.#stack.push(value);
    return false;
  }

  #setItems(pairs: unknown[], target: unknown, push = false): false {
    const entries = target instanceof PickleCall ? target.entries : target;
    if (!(entries instanceof Map) || pairs.length % 2 !== 0) throw this.#cursor.corrupt("items are set on no dict");
    for (let i = 0; i < pairs.length; i += 2) entries.set(pairs[i], pairs[i + 1]);
    return push ? this.#push(target) : false;
  }

  #append(values: unknown[], target: unknown): false {
    const items = target instanceof PickleCall || target instanceof PickleSet ? target.items : target;
    if (!Array.isArray(items)) throw this.#cursor.corrupt("items are appended to no list");
    for (const value of values) items.push(value);
    return false;
  }

  #frozenSet(values: unknown[]): false {
    const set = new PickleSet();
    for (const value of values) set.items.push(value);
    return this.#push(set);
  }

  #global(module: unknown, attribute: unknown): false {
    if (typeof module !== "string" || typeof attribute !== "string") throw this.#cursor.corrupt("a global has no name");
    const name = `${module}.${attribute}`;
    if (!this.#limits.globals.has(name)) {
      throw new OptError(
        "REFUSED",
        this.#cursor.source.path,
        `the pickle wants ${name.slice(0, 200)}, which no tensor or plain value needs.`,
        "Nothing was run. If you trust the file, load it where it was written and save tensors and plain values only.",
      );
    }
    return this.#push(new PickleGlobal(name));
  }

  #call(): false {
    const [callable, args] = this.#popMany(2);
    if (!(callable instanceof PickleGlobal) || !(args instanceof PickleTuple)) {
      throw this.#cursor.corrupt("the pickle calls what is no name");
    }
    return this.#push(new PickleCall(callable.name, args.items));
  }

  #build(): false {
    const state = this.#pop();
    const target = this.#top();
    if (!(target instanceof PickleCall)) throw this.#cursor.corrupt("state is built onto what has none");
    target.state = state;
    return false;
  }

  #persistent(id: PicklePersistent): false {
    if (!this.#limits.persistent) throw this.#cursor.corrupt("a persistent id has no meaning in this file");
    this.#limits.persistent(id);
    return this.#push(id);
  }

  #long(length: number): false | Promise<false> {
    if (length > LONGEST_INTEGER) throw this.#cursor.corrupt(`an integer of ${length} bytes is named`);
    return this.#payload(length, (bytes) => {
      let value = 0n;
      for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i]!);
      return narrow(BigInt.asIntN(Math.max(1, bytes.length * 8), value));
    });
  }

  #string(length: number): false | Promise<false> {
    if (length > LONG_TEXT) return this.#range("text", length);
    return this.#payload(length, (bytes) => {
      try {
        return this.#text.decode(bytes);
      } catch {
        // Lone surrogates (Python's surrogatepass) have no UTF-8: they read as U+FFFD.
        return new TextDecoder().decode(bytes);
      }
    });
  }

  #bytes(length: number): false | Promise<false> {
    if (length > LONG_PAYLOAD) return this.#range("bytes", length);
    return this.#payload(length, (bytes) => bytes.slice());
  }

  #byteString(length: number): false | Promise<false> {
    if (length > LONG_PAYLOAD) return this.#range("bytes", length);
    return this.#payload(length, (bytes) => this.#latin1.decode(bytes));
  }

  #range(kind: "bytes" | "text", length: number): false {
    const range = new PickleRange(kind, this.#cursor.position, length);
    this.#cursor.skip(length);
    return this.#push(range);
  }

  #payload(length: number, read: (bytes: Uint8Array) => unknown): false | Promise<false> {
    if (this.#cursor.has(length)) return this.#push(read(this.#cursor.take(length)));
    return this.#cursor.need(length).then(() => this.#push(read(this.#cursor.take(length))));
  }

  async #line(): Promise<string> {
    let line = "";
    for (;;) {
      await this.#cursor.need(1);
      const byte = this.#cursor.uint8();
      if (byte === 0x0a) return line;
      if (line.length >= LONG_PAYLOAD) throw this.#cursor.corrupt("a line of the pickle does not end");
      line += String.fromCharCode(byte);
    }
  }

  #decimal(line: string): unknown {
    if (line === "00" || line === "01") return line === "01";
    if (!/^-?\d+L?$/.test(line)) throw this.#cursor.corrupt("an integer has no digits");
    return narrow(BigInt(line.replace("L", "")));
  }
}

function float(value: number): number | PickleFloat {
  return Number.isInteger(value) ? new PickleFloat(value) : value;
}

function narrow(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
