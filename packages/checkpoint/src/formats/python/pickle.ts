/** Pickle is a program. This reader runs the part that builds data, and only notes what the rest would have called. */
import { OptError } from "@opt/core";
import { ByteCursor } from "../bytes/cursor";
import type { ByteSource } from "../bytes/source";
import { PickleCall, PickleGlobal, PicklePersistent, PickleSet, PickleTuple } from "./pickle-objects";
import { float, PicklePayloads } from "./pickle-payloads";
import { PickleStack } from "./pickle-stack";

export interface PickleLimits {
  /** Names (`module.name`) that may occur; any other is refused. */
  readonly globals: ReadonlySet<string>;
  /** Called with each persistent id; without it they may not occur. */
  readonly persistent?: (id: PicklePersistent) => void;
  /** About how many bytes the objects may take in memory; 192 MiB without it. */
  readonly memory?: number;
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
  readonly #stack: PickleStack;
  readonly #payloads: PicklePayloads;

  constructor(cursor: ByteCursor, limits: PickleLimits) {
    this.#cursor = cursor;
    this.#limits = limits;
    this.#stack = new PickleStack(cursor, limits.memory);
    this.#payloads = new PicklePayloads(cursor);
  }

  /** Runs one opcode; true (or a promise of it) when it was STOP. Only long payloads wait. */
  step(): boolean | Promise<boolean> {
    const cursor = this.#cursor;
    const stack = this.#stack;
    const payloads = this.#payloads;
    const opcode = cursor.uint8();
    switch (opcode) {
      case 0x80: // PROTO
        if (cursor.uint8() > 5) throw cursor.corrupt("the pickle has a protocol above 5");
        return false;
      case 0x95: // FRAME
        cursor.length64();
        return false;
      case 0x2e: // STOP
        this.result = stack.pop();
        return true;
      case 0x28: // MARK
        return stack.mark();
      case 0x30: // POP
        return stack.drop();
      case 0x31: // POP_MARK
        stack.popToMark();
        return false;
      case 0x32: // DUP
        return stack.push(stack.top());
      case 0x4e: // NONE
        return stack.push(null);
      case 0x88: // NEWTRUE
        return stack.push(true);
      case 0x89: // NEWFALSE
        return stack.push(false);
      case 0x4a: // BININT
        return stack.push(cursor.int32());
      case 0x4b: // BININT1
        return stack.push(cursor.uint8());
      case 0x4d: // BININT2
        return stack.push(cursor.uint16());
      case 0x47: // BINFLOAT
        return stack.push(float(cursor.float64BigEndian()));
      case 0x8a: // LONG1
        return this.#pushRead(payloads.integer(cursor.uint8()));
      case 0x8b: // LONG4
        return this.#pushRead(payloads.integer(cursor.uint32()));
      case 0x49: // INT
      case 0x4c: // LONG
        return this.#pushRead(payloads.decimal());
      case 0x46: // FLOAT
        return this.#pushRead(payloads.line().then((line) => float(Number(line))));
      case 0x8c: // SHORT_BINUNICODE
        return this.#pushRead(payloads.string(cursor.uint8()));
      case 0x58: // BINUNICODE
        return this.#pushRead(payloads.string(cursor.uint32()));
      case 0x8d: // BINUNICODE8
        return this.#pushRead(payloads.string(cursor.length64()));
      case 0x43: // SHORT_BINBYTES
        return this.#pushRead(payloads.bytes(cursor.uint8()));
      case 0x42: // BINBYTES
        return this.#pushRead(payloads.bytes(cursor.uint32()));
      case 0x8e: // BINBYTES8
      case 0x96: // BYTEARRAY8
        return this.#pushRead(payloads.bytes(cursor.length64()));
      case 0x55: // SHORT_BINSTRING
        return this.#pushRead(payloads.byteString(cursor.uint8()));
      case 0x54: // BINSTRING
        return this.#pushRead(payloads.byteString(cursor.uint32()));
      case 0x7d: // EMPTY_DICT
        return stack.push(new Map());
      case 0x5d: // EMPTY_LIST
        return stack.push([]);
      case 0x29: // EMPTY_TUPLE
        return stack.push(new PickleTuple([]));
      case 0x8f: // EMPTY_SET
        return stack.push(new PickleSet());
      case 0x85: // TUPLE1
      case 0x86: // TUPLE2
      case 0x87: // TUPLE3
        return stack.push(new PickleTuple(stack.popMany(opcode - 0x84)));
      case 0x74: // TUPLE
        return stack.push(new PickleTuple(stack.popToMark()));
      case 0x6c: // LIST
        return stack.push(stack.popToMark());
      case 0x64: // DICT
        return this.#setItems(stack.popToMark(), new Map(), true);
      case 0x91: // FROZENSET
        return this.#frozenSet(stack.popToMark());
      case 0x73: // SETITEM
        return this.#setItems(stack.popMany(2), stack.top());
      case 0x75: // SETITEMS
        return this.#setItems(stack.popToMark(), stack.top());
      case 0x61: // APPEND
        return this.#append(stack.popMany(1), stack.top());
      case 0x65: // APPENDS
      case 0x90: // ADDITEMS
        return this.#append(stack.popToMark(), stack.top());
      case 0x71: // BINPUT
        return stack.put(cursor.uint8());
      case 0x72: // LONG_BINPUT
        return stack.put(cursor.uint32());
      case 0x94: // MEMOIZE
        return stack.put();
      case 0x68: // BINGET
        return stack.get(cursor.uint8());
      case 0x6a: // LONG_BINGET
        return stack.get(cursor.uint32());
      case 0x63: // GLOBAL
        return payloads.line().then(async (module) => this.#global(module, await payloads.line()));
      case 0x93: {
        // STACK_GLOBAL
        const [module, name] = stack.popMany(2);
        return this.#global(module, name);
      }
      case 0x52: // REDUCE
      case 0x81: // NEWOBJ
        return this.#call();
      case 0x62: // BUILD
        return this.#build();
      case 0x51: // BINPERSID
        return this.#persistent(new PicklePersistent(stack.pop()));
      default:
        throw cursor.corrupt(`pickle opcode 0x${opcode.toString(16).padStart(2, "0")} is not one that data needs`);
    }
  }

  #pushRead(read: unknown): false | Promise<false> {
    return read instanceof Promise ? read.then((value) => this.#stack.push(value)) : this.#stack.push(read);
  }

  #setItems(pairs: unknown[], target: unknown, push = false): false {
    const entries = target instanceof PickleCall ? target.entries : target;
    if (!(entries instanceof Map) || pairs.length % 2 !== 0) throw this.#cursor.corrupt("items are set on no dict");
    for (let i = 0; i < pairs.length; i += 2) entries.set(pairs[i], pairs[i + 1]);
    return push ? this.#stack.push(target) : false;
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
    return this.#stack.push(set);
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
    return this.#stack.push(new PickleGlobal(name));
  }

  #call(): false {
    const [callable, args] = this.#stack.popMany(2);
    if (!(callable instanceof PickleGlobal) || !(args instanceof PickleTuple)) {
      throw this.#cursor.corrupt("the pickle calls what is no name");
    }
    return this.#stack.push(new PickleCall(callable.name, args.items));
  }

  #build(): false {
    const state = this.#stack.pop();
    const target = this.#stack.top();
    if (!(target instanceof PickleCall)) throw this.#cursor.corrupt("state is built onto what has none");
    target.state = state;
    return false;
  }

  #persistent(id: PicklePersistent): false {
    if (!this.#limits.persistent) throw this.#cursor.corrupt("a persistent id has no meaning in this file");
    this.#limits.persistent(id);
    return this.#stack.push(id);
  }
}
