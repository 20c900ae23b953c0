/** Pickle is a program. This reader runs the part that builds data, and only notes what the rest would have called. */
import { check } from "@opt/core";
import type { ReadLimits } from "../../format/source";
import { ByteCursor } from "../bytes/cursor";
import type { ByteSource } from "../bytes/source";
import { isHostile } from "./foreign";
import { PickleCall, PickleGlobal, PicklePersistent, PickleSet, PickleTuple } from "./pickle-objects";
import { float, LONGEST_STEP, PicklePayloads } from "./pickle-payloads";
import { PickleStack } from "./pickle-stack";

export interface PickleLimits {
  /** Names (`module.name`) of data; objects of others are foreign. */
  readonly globals: Pick<ReadonlySet<string>, "has">;
  /** Called with each persistent id; without it they may not occur. */
  readonly persistent?: (id: PicklePersistent) => void;
  /** About how many bytes the objects may take in memory; without it 64 MiB and 32 times the file, up to 1.5 GiB. */
  readonly memory?: number;
}

/**
 * Reads one pickle of protocols 2 to 5. Source: CPython's pickletools.
 *
 * @throws OptError REFUSED for a name that attackers call, CORRUPT
 */
export async function readPickle(cursor: ByteCursor, limits: PickleLimits): Promise<unknown> {
  const machine = new PickleMachine(cursor, limits);
  for (;;) {
    const ahead = Math.min(LONGEST_STEP, cursor.remaining);
    if (!cursor.has(ahead)) await cursor.need(ahead);
    if (machine.step()) return machine.result;
  }
}

/** The pickle at the start of a source. */
export function readPickleOf(
  source: ByteSource,
  limits: PickleLimits,
  { maxObjects }: ReadLimits = {},
): Promise<unknown> {
  const memory = maxObjects === undefined ? {} : { memory: maxObjects * BYTES_PER_OBJECT };
  return readPickle(new ByteCursor(source), { ...limits, ...memory });
}

/** What an object takes in memory, about. */
const BYTES_PER_OBJECT = 500;

/** Longer names are cut. */
const LONGEST_CALLED = 200;

type Step = (machine: PickleMachine) => boolean;

/** The opcodes that data need, and what each does: true ends the pickle. */
const OPCODES = {
  PROTO: [
    0x80,
    ({ cursor }) => {
      if (cursor.uint8() > 5) throw cursor.corrupt("the pickle has a protocol above 5");
      return false;
    },
  ],
  FRAME: [0x95, ({ cursor }) => cursor.length64() < 0],
  STOP: [
    0x2e,
    (machine) => {
      machine.result = machine.stack.pop();
      return true;
    },
  ],
  MARK: [0x28, ({ stack }) => stack.mark()],
  POP: [0x30, ({ stack }) => stack.drop()],
  POP_MARK: [
    0x31,
    ({ stack }) => {
      stack.popToMark();
      return false;
    },
  ],
  DUP: [0x32, ({ stack }) => stack.push(stack.top())],
  NONE: [0x4e, ({ stack }) => stack.push(null)],
  NEWTRUE: [0x88, ({ stack }) => stack.push(true)],
  NEWFALSE: [0x89, ({ stack }) => stack.push(false)],
  BININT: [0x4a, ({ stack, cursor }) => stack.push(cursor.int32())],
  BININT1: [0x4b, ({ stack, cursor }) => stack.push(cursor.uint8())],
  BININT2: [0x4d, ({ stack, cursor }) => stack.push(cursor.uint16())],
  BINFLOAT: [0x47, ({ stack, cursor }) => stack.push(float(cursor.float64BigEndian()))],
  LONG1: [0x8a, ({ stack, payloads, cursor }) => stack.push(payloads.integer(cursor.uint8()))],
  LONG4: [0x8b, ({ stack, payloads, cursor }) => stack.push(payloads.integer(cursor.uint32()))],
  SHORT_BINUNICODE: [0x8c, ({ stack, payloads, cursor }) => stack.push(payloads.string(cursor.uint8()))],
  BINUNICODE: [0x58, ({ stack, payloads, cursor }) => stack.push(payloads.string(cursor.uint32()))],
  BINUNICODE8: [0x8d, ({ stack, payloads, cursor }) => stack.push(payloads.string(cursor.length64()))],
  SHORT_BINBYTES: [0x43, ({ stack, payloads, cursor }) => stack.push(payloads.bytes(cursor.uint8()))],
  BINBYTES: [0x42, ({ stack, payloads, cursor }) => stack.push(payloads.bytes(cursor.uint32()))],
  BINBYTES8: [0x8e, ({ stack, payloads, cursor }) => stack.push(payloads.bytes(cursor.length64()))],
  BYTEARRAY8: [0x96, ({ stack, payloads, cursor }) => stack.push(payloads.bytes(cursor.length64()))],
  SHORT_BINSTRING: [0x55, ({ stack, payloads, cursor }) => stack.push(payloads.byteString(cursor.uint8()))],
  BINSTRING: [0x54, ({ stack, payloads, cursor }) => stack.push(payloads.byteString(cursor.uint32()))],
  EMPTY_DICT: [0x7d, ({ stack }) => stack.push(new Map())],
  EMPTY_LIST: [0x5d, ({ stack }) => stack.push([])],
  EMPTY_TUPLE: [0x29, ({ stack }) => stack.push(new PickleTuple([]))],
  EMPTY_SET: [0x8f, ({ stack }) => stack.push(new PickleSet())],
  TUPLE1: [0x85, ({ stack }) => stack.push(new PickleTuple(stack.popMany(1)))],
  TUPLE2: [0x86, ({ stack }) => stack.push(new PickleTuple(stack.popMany(2)))],
  TUPLE3: [0x87, ({ stack }) => stack.push(new PickleTuple(stack.popMany(3)))],
  TUPLE: [0x74, ({ stack }) => stack.push(new PickleTuple(stack.popToMark()))],
  LIST: [0x6c, ({ stack }) => stack.push(stack.popToMark())],
  DICT: [0x64, (machine) => machine.setItems(machine.stack.popToMark(), new Map(), true)],
  FROZENSET: [0x91, ({ stack }) => stack.push(new PickleSet(stack.popToMark()))],
  SETITEM: [0x73, (machine) => machine.setItems(machine.stack.popMany(2), machine.stack.top())],
  SETITEMS: [0x75, (machine) => machine.setItems(machine.stack.popToMark(), machine.stack.top())],
  APPEND: [0x61, (machine) => machine.append(machine.stack.popMany(1), machine.stack.top())],
  APPENDS: [0x65, (machine) => machine.append(machine.stack.popToMark(), machine.stack.top())],
  ADDITEMS: [0x90, (machine) => machine.append(machine.stack.popToMark(), machine.stack.top())],
  BINPUT: [0x71, ({ stack, cursor }) => stack.put(cursor.uint8())],
  LONG_BINPUT: [0x72, ({ stack, cursor }) => stack.put(cursor.uint32())],
  MEMOIZE: [0x94, ({ stack }) => stack.put()],
  BINGET: [0x68, ({ stack, cursor }) => stack.get(cursor.uint8())],
  LONG_BINGET: [0x6a, ({ stack, cursor }) => stack.get(cursor.uint32())],
  GLOBAL: [0x63, (machine) => machine.global([machine.payloads.line(), machine.payloads.line()])],
  STACK_GLOBAL: [0x93, (machine) => machine.global(machine.stack.popMany(2))],
  REDUCE: [0x52, (machine) => machine.call()],
  NEWOBJ: [0x81, (machine) => machine.call()],
  NEWOBJ_EX: [0x92, (machine) => machine.called(machine.stack.popMany(3))],
  BUILD: [0x62, (machine) => machine.build()],
  BINPERSID: [0x51, (machine) => machine.persistent(new PicklePersistent(machine.stack.pop()))],
} satisfies Record<string, [code: number, Step]>;

const STEPS = new Map<number, Step>(Object.values(OPCODES));

/** The opcodes' numbers, for who writes them. */
export const OP = Object.fromEntries(Object.entries(OPCODES).map(([name, [code]]) => [name, code])) as {
  readonly [name in keyof typeof OPCODES]: number;
};

class PickleMachine {
  result: unknown;
  readonly cursor: ByteCursor;
  readonly stack: PickleStack;
  readonly payloads: PicklePayloads;
  readonly #limits: PickleLimits;

  constructor(cursor: ByteCursor, limits: PickleLimits) {
    this.cursor = cursor;
    this.#limits = limits;
    this.stack = new PickleStack(cursor, limits.memory);
    this.payloads = new PicklePayloads(cursor);
  }

  step(): boolean {
    const opcode = this.cursor.uint8();
    const step = STEPS.get(opcode);
    if (step !== undefined) return step(this);
    const code = opcode.toString(16).padStart(2, "0");
    throw this.cursor.corrupt(`pickle opcode 0x${code} is not one that data needs`);
  }

  setItems(pairs: unknown[], target: unknown, push = false): false {
    const entries = target instanceof PickleCall ? target.entries : target;
    if (!(entries instanceof Map) || pairs.length % 2 !== 0) throw this.cursor.corrupt("items are set on no dict");
    for (let i = 0; i < pairs.length; i += 2) entries.set(pairs[i], pairs[i + 1]);
    return push ? this.stack.push(target) : false;
  }

  append(values: unknown[], target: unknown): false {
    const items = target instanceof PickleCall || target instanceof PickleSet ? target.items : target;
    if (!Array.isArray(items)) throw this.cursor.corrupt("items are appended to no list");
    for (const value of values) items.push(value);
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
    return this.stack.push(new PickleGlobal(name.slice(0, LONGEST_CALLED), !isKnown));
  }

  call(): false {
    return this.called(this.stack.popMany(2));
  }

  /** `keywords` as items of the object. */
  called([callable, args, keywords]: readonly unknown[]): false {
    if (!(args instanceof PickleTuple)) throw this.cursor.corrupt("the pickle calls what is no name");
    if (callable instanceof PickleGlobal && /^(__builtin__|builtins)\.bytes$/.test(callable.name)) {
      // How protocol 2 spells b"".
      if (args.items.length === 0) return this.stack.push(new Uint8Array(0));
    }
    // Before 1.6 a module's class lies outside of the pickle, beside its source.
    const outside = callable instanceof PicklePersistent && callable.id instanceof PickleTuple ? callable.id.items : [];
    if (outside[0] === "module" && outside[1] instanceof PickleGlobal)
      return this.called([new PickleGlobal(outside[1].name, true), args, keywords]);
    const isNamed = callable instanceof PickleGlobal;
    const made = isNamed
      ? new PickleCall(callable.name, args.items, callable.isForeign)
      : callable instanceof PickleCall
        ? new PickleCall(`${callable.callable}()`.slice(0, LONGEST_CALLED), [callable, ...args.items], true)
        : undefined;
    if (made === undefined) throw this.cursor.corrupt("the pickle calls what is no name");
    if (keywords instanceof Map) for (const [key, value] of keywords) made.entries.set(key, value);
    return this.stack.push(made);
  }

  build(): false {
    const state = this.stack.pop();
    const target = this.stack.top();
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
