/** Reads the state of a record at once where it is spelled as picklers spell small objects: files have millions. */
import { isCount } from "../../layout/counts";
import type { ByteCursor } from "../bytes/cursor";
import { PickleFields, PickleGlobal, PickleNumbers, type PickleRecord } from "./pickle-objects";
import { OP } from "./pickle-opcodes";
import type { PicklePayloads } from "./pickle-payloads";
import type { PickleStack } from "./pickle-stack";

/** No value that is read here is longer, with what follows it. */
const LONGEST_VALUE = 1024;
const MOST_VALUES = 32;
const MOST_KNOWN = 100_000;
/** Tuples of as many items have an opcode of their own. */
const TUPLES: readonly number[] = [OP.EMPTY_TUPLE, OP.TUPLE1, OP.TUPLE2, OP.TUPLE3];

export class PickleRecords {
  /** One for all: nobody keeps them. */
  readonly #fields = new PickleFields();
  readonly #pairs: unknown[] = [];
  readonly #items: number[] = [];
  /** By their hash. */
  readonly #known = new Map<number, PickleNumbers>();

  constructor(
    private readonly cursor: ByteCursor,
    private readonly stack: PickleStack,
    private readonly payloads: PicklePayloads,
  ) {}

  /** The record whose state follows. Undefined where it is spelled otherwise: then nothing is taken. */
  read(build: PickleRecord["build"]): object | undefined {
    const { cursor, stack } = this;
    const { position } = cursor;
    const { puts } = stack;
    if (this.#readPairs()) return build(this.#fields);
    cursor.back(position);
    stack.puts = puts;
    return undefined;
  }

  #readPairs(): boolean {
    const { cursor } = this;
    if (!cursor.has(LONGEST_VALUE)) return false;
    if (!this.#isHolderPut() || cursor.uint8() !== OP.EMPTY_DICT) return false;
    if (!this.#isHolderPut() || cursor.uint8() !== OP.MARK) return false;
    let count = 0;
    for (let opcode = cursor.uint8(); opcode !== OP.SETITEMS; opcode = cursor.uint8()) {
      const value = this.#value(opcode);
      if (value === undefined || count === MOST_VALUES || !cursor.has(LONGEST_VALUE)) return false;
      this.#pairs[count++] = value;
    }
    if (this.#pairs.length !== count) this.#pairs.length = count;
    this.#fields.pairs = this.#pairs;
    return count % 2 === 0 && cursor.uint8() === OP.BUILD;
  }

  /** Undefined for what is not read here. */
  #value(opcode: number): unknown {
    const { cursor, stack } = this;
    if (opcode === OP.BINGET || opcode === OP.LONG_BINGET) {
      const value = stack.plainAt(opcode === OP.BINGET ? cursor.uint8() : cursor.uint32());
      return value instanceof PickleGlobal ? this.#numbers(value) : value;
    }
    if (opcode === OP.NONE) return null;
    if (opcode !== OP.SHORT_BINUNICODE) return this.#integer(opcode);
    const text = this.payloads.string(cursor.uint8());
    return this.#isPut(text) ? text : undefined;
  }

  #integer(opcode: number): number | undefined {
    const { cursor } = this;
    if (opcode === OP.BININT1) return cursor.uint8();
    if (opcode === OP.BININT2) return cursor.uint16();
    if (opcode === OP.BININT) return cursor.int32();
    if (opcode !== OP.LONG1) return undefined;
    const value = this.payloads.integer(cursor.uint8());
    return typeof value === "number" ? value : undefined;
  }

  #numbers({ kind }: PickleGlobal): PickleNumbers | undefined {
    const { cursor } = this;
    if (!kind?.isNumbers) return undefined;
    let opcode = cursor.uint8();
    const isMarked = opcode === OP.MARK;
    if (isMarked) opcode = cursor.uint8();
    let count = 0;
    for (let item = this.#integer(opcode); item !== undefined; item = this.#integer(opcode)) {
      if (count === MOST_VALUES) return undefined;
      this.#items[count++] = item;
      opcode = cursor.uint8();
    }
    if (opcode !== (isMarked ? OP.TUPLE : TUPLES[count])) return undefined;
    if (count > 0 && !this.#isHolderPut()) return undefined;
    if (cursor.uint8() !== OP.TUPLE1 || !this.#isHolderPut() || cursor.uint8() !== OP.REDUCE) return undefined;
    const made = this.numbersOf(this.#items, count);
    return made && this.#isPut(made) ? made : undefined;
  }

  /** The first so many items as a tuple of counts. What recurs is kept once while there are few. */
  numbersOf(items: readonly unknown[], count = items.length): PickleNumbers | undefined {
    let hash = count;
    for (let i = 0; i < count; i++) {
      const item = items[i];
      if (!isCount(item)) return undefined;
      hash = (Math.imul(hash, 31) + item) | 0;
    }
    const known = this.#known.get(hash);
    if (known !== undefined && isStart(known.items, items, count)) return known;
    const made = new PickleNumbers(items.slice(0, count) as number[]);
    if (this.#known.size < MOST_KNOWN) this.#known.set(hash, made);
    return made;
  }

  /** Passes the put of what can hold others. One that is recalled later is not read here. */
  #isHolderPut(): boolean {
    return this.cursor.uint8() === OP.MEMOIZE && this.stack.isForgotten();
  }

  #isPut(value: unknown): boolean {
    return this.cursor.uint8() === OP.MEMOIZE && this.stack.putPlain(value);
  }
}

function isStart(start: readonly number[], items: readonly unknown[], count: number): boolean {
  if (start.length !== count) return false;
  for (let i = 0; i < count; i++) if (start[i] !== items[i]) return false;
  return true;
}
