/** Pickle is a program. This reader runs the part that builds data, and only notes what the rest would have called. */
import { OptError } from "@opt/core";
import { ByteCursor } from "../bytes/cursor";
import type { ByteSource } from "../bytes/source";
import { OP } from "./opcodes";
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

type Step = (machine: PickleMachine) => boolean | Promise<boolean>;

/** What each opcode does: true (or a promise of it) ends the pickle. Only long payloads wait. */
const STEPS: Readonly<Record<number, Step>> = {
  [OP.PROTO]: ({ cursor }) => {
    if (cursor.uint8() > 5) throw cursor.corrupt("the pickle has a protocol above 5");
    return false;
  },
  [OP.FRAME]: ({ cursor }) => cursor.length64() < 0,
  [OP.STOP]: (machine) => {
    machine.result = machine.stack.pop();
    return true;
  },
  [OP.MARK]: ({ stack }) => stack.mark(),
  [OP.POP]: ({ stack }) => stack.drop(),
  [OP.POP_MARK]: ({ stack }) => {
    stack.popToMark();
    return false;
  },
  [OP.DUP]: ({ stack }) => stack.push(stack.top()),
  [OP.NONE]: ({ stack }) => stack.push(null),
  [OP.NEWTRUE]: ({ stack }) => stack.push(true),
  [OP.NEWFALSE]: ({ stack }) => stack.push(false),
  [OP.BININT]: ({ stack, cursor }) => stack.push(cursor.int32()),
  [OP.BININT1]: ({ stack, cursor }) => stack.push(cursor.uint8()),
  [OP.BININT2]: ({ stack, cursor }) => stack.push(cursor.uint16()),
  [OP.BINFLOAT]: ({ stack, cursor }) => stack.push(float(cursor.float64BigEndian())),
  [OP.LONG1]: (machine) => machine.pushRead(machine.payloads.integer(machine.cursor.uint8())),
  [OP.LONG4]: (machine) => machine.pushRead(machine.payloads.integer(machine.cursor.uint32())),
  [OP.INT]: (machine) => machine.pushRead(machine.payloads.decimal()),
  [OP.LONG]: (machine) => machine.pushRead(machine.payloads.decimal()),
  [OP.FLOAT]: (machine) => machine.pushRead(machine.payloads.line().then((line) => float(Number(line)))),
  [OP.SHORT_BINUNICODE]: (machine) => machine.pushRead(machine.payloads.string(machine.cursor.uint8())),
  [OP.BINUNICODE]: (machine) => machine.pushRead(machine.payloads.string(machine.cursor.uint32())),
  [OP.BINUNICODE8]: (machine) => machine.pushRead(machine.payloads.string(machine.cursor.length64())),
  [OP.SHORT_BINBYTES]: (machine) => machine.pushRead(machine.payloads.bytes(machine.cursor.uint8())),
  [OP.BINBYTES]: (machine) => machine.pushRead(machine.payloads.bytes(machine.cursor.uint32())),
  [OP.BINBYTES8]: (machine) => machine.pushRead(machine.payloads.bytes(machine.cursor.length64())),
  [OP.BYTEARRAY8]: (machine) => machine.pushRead(machine.payloads.bytes(machine.cursor.length64())),
  [OP.SHORT_BINSTRING]: (machine) => machine.pushRead(machine.payloads.byteString(machine.cursor.uint8())),
  [OP.BINSTRING]: (machine) => machine.pushRead(machine.payloads.byteString(machine.cursor.uint32())),
  [OP.EMPTY_DICT]: ({ stack }) => stack.push(new Map()),
  [OP.EMPTY_LIST]: ({ stack }) => stack.push([]),
  [OP.EMPTY_TUPLE]: ({ stack }) => stack.push(new PickleTuple([])),
  [OP.EMPTY_SET]: ({ stack }) => stack.push(new PickleSet()),
  [OP.TUPLE1]: ({ stack }) => stack.push(new PickleTuple(stack.popMany(1))),
  [OP.TUPLE2]: ({ stack }) => stack.push(new PickleTuple(stack.popMany(2))),
  [OP.TUPLE3]: ({ stack }) => stack.push(new PickleTuple(stack.popMany(3))),
  [OP.TUPLE]: ({ stack }) => stack.push(new PickleTuple(stack.popToMark())),
  [OP.LIST]: ({ stack }) => stack.push(stack.popToMark()),
  [OP.DICT]: (machine) => machine.setItems(machine.stack.popToMark(), new Map(), true),
  [OP.FROZENSET]: ({ stack }) => stack.push(new PickleSet(stack.popToMark())),
  [OP.SETITEM]: (machine) => machine.setItems(machine.stack.popMany(2), machine.stack.top()),
  [OP.SETITEMS]: (machine) => machine.setItems(machine.stack.popToMark(), machine.stack.top()),
  [OP.APPEND]: (machine) => machine.append(machine.stack.popMany(1), machine.stack.top()),
  [OP.APPENDS]: (machine) => machine.append(machine.stack.popToMark(), machine.stack.top()),
  [OP.ADDITEMS]: (machine) => machine.append(machine.stack.popToMark(), machine.stack.top()),
  [OP.BINPUT]: ({ stack, cursor }) => stack.put(cursor.uint8()),
  [OP.LONG_BINPUT]: ({ stack, cursor }) => stack.put(cursor.uint32()),
  [OP.MEMOIZE]: ({ stack }) => stack.put(),
  [OP.BINGET]: ({ stack, cursor }) => stack.get(cursor.uint8()),
  [OP.LONG_BINGET]: ({ stack, cursor }) => stack.get(cursor.uint32()),
  [OP.GLOBAL]: (machine) => machine.named(),
  [OP.STACK_GLOBAL]: (machine) => {
    const [module, name] = machine.stack.popMany(2);
    return machine.global(module, name);
  },
  [OP.REDUCE]: (machine) => machine.call(),
  [OP.NEWOBJ]: (machine) => machine.call(),
  [OP.BUILD]: (machine) => machine.build(),
  [OP.BINPERSID]: (machine) => machine.persistent(new PicklePersistent(machine.stack.pop())),
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

  step(): boolean | Promise<boolean> {
    const opcode = this.cursor.uint8();
    const step = STEPS[opcode];
    if (step !== undefined) return step(this);
    const code = opcode.toString(16).padStart(2, "0");
    throw this.cursor.corrupt(`pickle opcode 0x${code} is not one that data needs`);
  }

  /** GLOBAL: two lines. */
  async named(): Promise<boolean> {
    const module = await this.payloads.line();
    return this.global(module, await this.payloads.line());
  }

  pushRead(read: unknown): false | Promise<false> {
    return read instanceof Promise ? read.then((value) => this.stack.push(value)) : this.stack.push(read);
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

  global(module: unknown, attribute: unknown): false {
    if (typeof module !== "string" || typeof attribute !== "string") throw this.cursor.corrupt("a global has no name");
    const name = `${module}.${attribute}`;
    if (!this.#limits.globals.has(name)) {
      throw new OptError(
        "REFUSED",
        this.cursor.source.path,
        `the pickle wants ${name.slice(0, 200)}, which no tensor or plain value needs.`,
        "Nothing was run. If you trust the file, load it where it was written and save tensors and plain values only.",
      );
    }
    return this.stack.push(new PickleGlobal(name));
  }

  call(): false {
    const [callable, args] = this.stack.popMany(2);
    if (!(callable instanceof PickleGlobal) || !(args instanceof PickleTuple)) {
      throw this.cursor.corrupt("the pickle calls what is no name");
    }
    return this.stack.push(new PickleCall(callable.name, args.items));
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
