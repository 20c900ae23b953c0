/** Pickle is a program. This reader runs the part that builds data, and only notes what the rest would have called. */
import { check } from "@opt/core";
import type { ReadLimits } from "../../format/source";
import { ByteCursor } from "../bytes/cursor";
import type { ByteSource } from "../bytes/source";
import { isHostile } from "./foreign";
import { type RecalledNumbers, recalledNumbers } from "./pickle-memo";
import {
  PickleCall,
  PickleFields,
  PickleGlobal,
  PicklePersistent,
  PickleRecord,
  PickleSet,
  PickleTuple,
  type RecordKind,
} from "./pickle-objects";
import { OP, type Opcode } from "./pickle-opcodes";
import { escapedText, float, floatOf, integerOf, LONGEST_STEP, PicklePayloads } from "./pickle-payloads";
import { PickleRecords } from "./pickle-records";
import { DICT_COST, OBJECT_COST, PickleStack, VALUE_COST } from "./pickle-stack";

export interface PickleLimits {
  /** Names (`module.name`) of data; objects of others are foreign. */
  readonly globals: Pick<ReadonlySet<string>, "has">;
  /** Called with each persistent id; without it they may not occur. */
  readonly persistent?: (id: PicklePersistent) => void;
  /** By the names of classes. */
  readonly records?: ReadonlyMap<string, RecordKind>;
  /** Called with each item of a dict; true for one that the dict then need not hold. */
  readonly takes?: (key: unknown, value: unknown) => boolean;
  /** About how many bytes the objects may take in memory; without it 64 MiB and 32 times the file, up to 1.5 GiB. */
  readonly memory?: number;
}

/**
 * Reads one pickle of protocols 0 to 5. Source: CPython's pickletools.
 *
 * @throws OptError REFUSED for a name that attackers call, CORRUPT
 */
export async function readPickle(cursor: ByteCursor, limits: PickleLimits): Promise<unknown> {
  const machine = new PickleMachine(cursor, limits, await recalledNumbers(cursor.source, cursor.position));
  for (;;) {
    const ahead = Math.min(LONGEST_STEP, cursor.remaining);
    if (!cursor.has(ahead)) await cursor.need(ahead);
    if (machine.run()) return machine.result;
  }
}

/** The pickle at the start of a source. */
export function readPickleOf(
  source: ByteSource,
  limits: PickleLimits,
  { maxObjects, ahead }: ReadLimits & { readonly ahead?: number } = {},
): Promise<unknown> {
  const memory = maxObjects === undefined ? {} : { memory: maxObjects * BYTES_PER_OBJECT };
  return readPickle(new ByteCursor(source, 0, ahead), { ...limits, ...memory });
}

/** What an object takes in memory, about. */
const BYTES_PER_OBJECT = 500;

/** Longer names are cut. */
const LONGEST_CALLED = 200;

type Step = (machine: PickleMachine) => boolean;

const BYTES: readonly string[] = ["__builtin__.bytes", "builtins.bytes"];
const NO_RECORD: RecordKind = {};
const EMPTY_TUPLE = new PickleTuple([]);

/** What each opcode does: true ends the pickle. */
const STEPS: Record<Opcode, Step> = {
  PROTO: ({ cursor }) => {
    if (cursor.uint8() > 5) throw cursor.corrupt("the pickle has a protocol above 5");
    return false;
  },
  FRAME: ({ cursor }) => cursor.length64() < 0,
  STOP: (machine) => {
    machine.result = machine.stack.pop();
    return true;
  },
  MARK: ({ stack }) => stack.mark(),
  POP: ({ stack }) => stack.drop(),
  POP_MARK: ({ stack }) => {
    stack.depth = stack.markedFrom();
    return false;
  },
  DUP: ({ stack }) => stack.duplicate(),
  NONE: ({ stack }) => stack.push(null),
  NEWTRUE: ({ stack }) => stack.push(true),
  NEWFALSE: ({ stack }) => stack.push(false),
  INT: ({ stack, payloads, cursor }) => {
    const line = payloads.line();
    return stack.push(line === "01" ? true : line === "00" ? false : integerOf(line, cursor));
  },
  LONG: ({ stack, payloads, cursor }) => stack.push(integerOf(payloads.line(), cursor)),
  FLOAT: ({ stack, payloads, cursor }) => stack.push(floatOf(payloads.line(), cursor)),
  STRING: ({ stack, payloads }) => stack.push(escapedText(payloads.line(), true)),
  UNICODE: ({ stack, payloads }) => stack.push(escapedText(payloads.line(), false)),
  BININT: ({ stack, cursor }) => stack.push(cursor.int32()),
  BININT1: ({ stack, cursor }) => stack.push(cursor.uint8()),
  BININT2: ({ stack, cursor }) => stack.push(cursor.uint16()),
  BINFLOAT: ({ stack, cursor }) => stack.push(float(cursor.float64BigEndian())),
  LONG1: ({ stack, payloads, cursor }) => stack.push(payloads.integer(cursor.uint8())),
  LONG4: ({ stack, payloads, cursor }) => stack.push(payloads.integer(cursor.uint32())),
  SHORT_BINUNICODE: ({ stack, payloads, cursor }) => stack.push(payloads.string(cursor.uint8())),
  BINUNICODE: ({ stack, payloads, cursor }) => stack.push(payloads.string(cursor.uint32())),
  BINUNICODE8: ({ stack, payloads, cursor }) => stack.push(payloads.string(cursor.length64())),
  SHORT_BINBYTES: ({ stack, payloads, cursor }) => stack.push(payloads.bytes(cursor.uint8())),
  BINBYTES: ({ stack, payloads, cursor }) => stack.push(payloads.bytes(cursor.uint32())),
  BINBYTES8: ({ stack, payloads, cursor }) => stack.push(payloads.bytes(cursor.length64())),
  BYTEARRAY8: ({ stack, payloads, cursor }) => stack.push(payloads.bytes(cursor.length64())),
  SHORT_BINSTRING: ({ stack, payloads, cursor }) => stack.push(payloads.byteString(cursor.uint8())),
  BINSTRING: ({ stack, payloads, cursor }) => stack.push(payloads.byteString(cursor.uint32())),
  EMPTY_DICT: (machine) => machine.dict(),
  EMPTY_LIST: ({ stack }) => stack.push([], OBJECT_COST),
  EMPTY_TUPLE: ({ stack }) => stack.push(EMPTY_TUPLE, VALUE_COST),
  EMPTY_SET: ({ stack }) => stack.push(new PickleSet()),
  TUPLE1: ({ stack }) => stack.push(new PickleTuple([stack.pop()]), OBJECT_COST),
  TUPLE2: ({ stack }) => {
    const second = stack.pop();
    return stack.push(new PickleTuple([stack.pop(), second]), OBJECT_COST);
  },
  TUPLE3: ({ stack }) => stack.push(new PickleTuple(stack.popFrom(stack.lastFrom(3)))),
  TUPLE: ({ stack }) => stack.push(new PickleTuple(stack.popFrom(stack.markedFrom()))),
  LIST: ({ stack }) => stack.push(stack.popFrom(stack.markedFrom())),
  DICT: (machine) => {
    const pairs = machine.stack.popFrom(machine.stack.markedFrom());
    machine.stack.push(new Map(), DICT_COST);
    for (const value of pairs) machine.stack.push(value, 0);
    return machine.setItems(machine.stack.lastFrom(pairs.length));
  },
  FROZENSET: ({ stack }) => stack.push(new PickleSet(stack.popFrom(stack.markedFrom()))),
  SETITEM: (machine) => machine.setItems(machine.stack.lastFrom(2)),
  SETITEMS: (machine) => machine.setItems(machine.stack.markedFrom()),
  APPEND: (machine) => machine.append(machine.stack.lastFrom(1)),
  APPENDS: (machine) => machine.append(machine.stack.markedFrom()),
  ADDITEMS: (machine) => machine.append(machine.stack.markedFrom()),
  PUT: ({ stack, payloads }) => stack.put(Number(payloads.line())),
  BINPUT: ({ stack, cursor }) => stack.put(cursor.uint8()),
  LONG_BINPUT: ({ stack, cursor }) => stack.put(cursor.uint32()),
  MEMOIZE: ({ stack }) => stack.put(),
  GET: ({ stack, payloads }) => stack.get(Number(payloads.line())),
  BINGET: ({ stack, cursor }) => stack.get(cursor.uint8()),
  LONG_BINGET: ({ stack, cursor }) => stack.get(cursor.uint32()),
  GLOBAL: (machine) => machine.global([machine.payloads.line(), machine.payloads.line()]),
  STACK_GLOBAL: (machine) => machine.global(machine.stack.popFrom(machine.stack.lastFrom(2))),
  REDUCE: (machine) => machine.call(),
  NEWOBJ: (machine) => machine.call(),
  NEWOBJ_EX: (machine) => {
    const [callable, args, keywords] = machine.stack.popFrom(machine.stack.lastFrom(3));
    return machine.called(callable, args, keywords);
  },
  BUILD: (machine) => machine.build(),
  BINPERSID: (machine) => machine.persistent(new PicklePersistent(machine.stack.pop())),
};

const BY_CODE: (Step | undefined)[] = new Array(256).fill(undefined);
for (const name of Object.keys(OP) as Opcode[]) BY_CODE[OP[name]] = STEPS[name];

class PickleMachine {
  result: unknown;
  readonly cursor: ByteCursor;
  readonly stack: PickleStack;
  readonly payloads: PicklePayloads;
  readonly #limits: PickleLimits;
  readonly #records: PickleRecords;

  constructor(cursor: ByteCursor, limits: PickleLimits, recalled: RecalledNumbers) {
    this.cursor = cursor;
    this.#limits = limits;
    this.stack = new PickleStack(cursor, recalled, limits.memory);
    this.payloads = new PicklePayloads(cursor);
    this.#records = new PickleRecords(cursor, this.stack, this.payloads);
  }

  /** Runs what the cursor has read; true at the end. */
  run(): boolean {
    const { cursor, stack } = this;
    do {
      const opcode = cursor.uint8();
      // These are more than half of a pickle.
      if (opcode === OP.MEMOIZE) stack.put();
      else if (opcode === OP.LONG_BINGET) stack.get(cursor.uint32());
      else if (opcode === OP.BINGET) stack.get(cursor.uint8());
      else if (this.#step(opcode)) return true;
    } while (cursor.has(LONGEST_STEP));
    return false;
  }

  #step(opcode: number): boolean {
    const step = BY_CODE[opcode];
    if (step !== undefined) return step(this);
    const code = opcode.toString(16).padStart(2, "0");
    throw this.cursor.corrupt(`pickle opcode 0x${code} is not one that data needs`);
  }

  /** The state of a record that has just begun, or a dict. */
  dict(): false {
    const { depth, values } = this.stack;
    const isState = depth > 0 && values[depth - 1] instanceof PickleRecord;
    return this.stack.push(isState ? new PickleFields() : new Map(), DICT_COST);
  }

  /** Sets the values from an index on, keys and values in turn, on what is below them. */
  setItems(from: number): false {
    const { values, depth } = this.stack;
    this.stack.depth = from;
    const target = this.stack.top();
    if ((depth - from) % 2 !== 0) throw this.cursor.corrupt("items are set on no dict");
    if (target instanceof PickleFields) {
      const pairs = values.slice(from, depth);
      target.pairs = target.pairs.length > 0 ? [...target.pairs, ...pairs] : pairs;
      return false;
    }
    const entries = target instanceof PickleCall ? target.entries : target;
    if (!(entries instanceof Map)) throw this.cursor.corrupt("items are set on no dict");
    for (let i = from; i < depth; i += 2)
      if (!this.#limits.takes?.(values[i], values[i + 1])) entries.set(values[i], values[i + 1]);
    return false;
  }

  append(from: number): false {
    const { values, depth } = this.stack;
    this.stack.depth = from;
    const target = this.stack.top();
    const items = target instanceof PickleCall || target instanceof PickleSet ? target.items : target;
    if (!Array.isArray(items)) throw this.cursor.corrupt("items are appended to no list");
    for (let i = from; i < depth; i++) items.push(values[i]);
    return false;
  }

  global([module, attribute]: readonly unknown[]): false {
    if (typeof module !== "string" || typeof attribute !== "string") throw this.cursor.corrupt("a global has no name");
    const name = `${module}.${attribute}`;
    const isKnown = this.#limits.globals.has(name);
    check(
      isKnown || !isHostile(name),
      "REFUSED",
      this.cursor.source.path,
      () => `the pickle wants ${name.slice(0, 200)}, which no tensor or plain value needs.`,
      "Nothing was run. If you trust the file, load it where it was written and save tensors and values only.",
    );
    return this.stack.push(new PickleGlobal(name.slice(0, LONGEST_CALLED), !isKnown, this.#limits.records?.get(name)));
  }

  call(): false {
    const args = this.stack.pop();
    return this.called(this.stack.pop(), args);
  }

  /** `keywords` as items of the object. */
  called(callable: unknown, args: unknown, keywords?: unknown): false {
    if (!(args instanceof PickleTuple)) throw this.cursor.corrupt("the pickle calls what is no name");
    const { isNumbers, built } = (callable instanceof PickleGlobal && callable.kind) || NO_RECORD;
    if (built) {
      const made = this.#records.read(built);
      return made ? this.stack.pushRecord(made) : this.stack.begin(built);
    }
    const [tuple] = args.items;
    const numbers = isNumbers && tuple instanceof PickleTuple ? this.#records.numbersOf(tuple.items) : undefined;
    if (numbers) return this.stack.push(numbers, OBJECT_COST);
    // How protocol 2 spells b"".
    if (args.items.length === 0 && callable instanceof PickleGlobal && BYTES.includes(callable.name))
      return this.stack.push(new Uint8Array(0));
    const made = this.#made(callable, args.items);
    if (keywords instanceof Map) for (const [key, value] of keywords) made.entries.set(key, value);
    return this.stack.push(made, OBJECT_COST);
  }

  #made(callable: unknown, args: readonly unknown[]): PickleCall {
    if (callable instanceof PickleGlobal) return new PickleCall(callable.name, args, callable.isForeign);
    if (callable instanceof PickleCall)
      return new PickleCall(`${callable.callable}()`.slice(0, LONGEST_CALLED), [callable, ...args], true);
    // Before 1.6 a module's class lies outside of the pickle, beside its source.
    const outside = callable instanceof PicklePersistent && callable.id instanceof PickleTuple ? callable.id.items : [];
    if (outside[0] === "module" && outside[1] instanceof PickleGlobal)
      return new PickleCall(outside[1].name, args, true);
    throw this.cursor.corrupt("the pickle calls what is no name");
  }

  build(): false {
    const state = this.stack.pop();
    const target = this.stack.top();
    if (target instanceof PickleRecord && (state instanceof PickleFields || state instanceof Map)) {
      target.built = target.build(state);
      return this.stack.finish(target);
    }
    if (!(target instanceof PickleCall)) throw this.cursor.corrupt("state is built onto what has none");
    target.state = state;
    return false;
  }

  persistent(id: PicklePersistent): false {
    if (!this.#limits.persistent) throw this.cursor.corrupt("a persistent id has no meaning in this file");
    this.#limits.persistent(id);
    return this.stack.push(id);
  }
}
