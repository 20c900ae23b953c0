/** The stack and the memo of a pickle's machine, and what all that they hold takes in memory. */
import type { ByteCursor } from "../bytes/cursor";
import type { RecalledNumbers } from "./pickle-memo";
import { PickleGlobal, PickleNumbers, PickleRecord } from "./pickle-objects";

// What values take in memory, about: an opcode of one byte may make an object of hundreds. Real pickles take 30 times their length.
export const OBJECT_COST = 160;
export const DICT_COST = 288;
const MEMO_COST = 48;
export const VALUE_COST = 16;
const RECORD_COST = 32;
const FREE_COST = 64 * 1024 * 1024;
const COST_PER_BYTE = 32;
const HIGHEST_COST = 1536 * 1024 * 1024;

export class PickleStack {
  readonly values: unknown[] = [];
  depth = 0;
  /** Values below the last mark are out of reach. */
  #floor = 0;
  readonly #floors: number[] = [];
  readonly #cursor: ByteCursor;
  readonly #recalled: RecalledNumbers;
  readonly #memo: unknown[];
  /** By place in the memo: whether the object can hold others. */
  readonly #holders: Uint8Array;
  /** How many objects were put into the memo. */
  puts = 0;
  #budget: number;
  /** What records took of the budget: they stay. */
  #kept = 0;
  /** How often an object that can hold others went to the memo, or came from there: it may hold anything made since. */
  #escapes = 0;

  /** `memory`: about how many bytes the objects may take. The cursor is for messages. */
  constructor(cursor: ByteCursor, recalled: RecalledNumbers, memory?: number) {
    this.#cursor = cursor;
    this.#budget = memory ?? Math.min(HIGHEST_COST, FREE_COST + COST_PER_BYTE * cursor.source.byteLength);
    this.#recalled = recalled;
    this.#spend(recalled.count * MEMO_COST);
    this.#memo = new Array(recalled.count).fill(undefined);
    this.#holders = new Uint8Array(recalled.count);
  }

  /** `cost`: what the value takes; that of what is held elsewhere too is `VALUE_COST`. */
  push(value: unknown, cost = typeof value === "object" && value !== null ? OBJECT_COST : VALUE_COST): false {
    this.#spend(cost);
    this.values[this.depth++] = value;
    return false;
  }

  #spend(cost: number): void {
    this.#budget -= cost;
    if (this.#budget < 0)
      throw this.#cursor.corrupt("the pickle holds too many objects for its length (see maxObjects)");
  }

  /** Pushes what stands for an object until its state is there. */
  begin(build: PickleRecord["build"]): false {
    return this.push(new PickleRecord(build, this.#budget, this.#kept, this.#escapes), OBJECT_COST);
  }

  /** Pushes a record of which nothing was on the stack. */
  pushRecord(built: object): false {
    this.#kept += RECORD_COST;
    return this.push(built, RECORD_COST);
  }

  /** Replaces the record on top. All that was made since it was begun is free again, unless some of it may be held elsewhere. */
  finish({ built, budget, kept, escapes }: PickleRecord): false {
    if (escapes === this.#escapes) this.#budget = budget - (this.#kept - kept);
    this.#kept += RECORD_COST;
    this.#spend(RECORD_COST);
    this.values[this.depth - 1] = built;
    return false;
  }

  mark(): false {
    this.#spend(VALUE_COST);
    this.#floors.push(this.#floor);
    this.#floor = this.depth;
    return false;
  }

  /** Forgets the last mark: the values from this index on are above it. */
  markedFrom(): number {
    const below = this.#floors.pop();
    if (below === undefined) throw this.#cursor.corrupt("the pickle closes what it never opened");
    const from = this.#floor;
    this.#floor = below;
    return from;
  }

  /** The index of the last so many values. */
  lastFrom(count: number): number {
    const from = this.depth - count;
    if (from < this.#floor) throw this.#cursor.corrupt("the pickle takes from an empty stack");
    return from;
  }

  top(): unknown {
    return this.values[this.lastFrom(1)];
  }

  duplicate(): false {
    this.#escapes++;
    return this.push(this.top());
  }

  pop(): unknown {
    this.depth = this.lastFrom(1);
    return this.values[this.depth];
  }

  /** Whatever is on top, a mark too; nothing of an empty stack. */
  drop(): false {
    if (this.depth > this.#floor) this.depth--;
    else if (this.#floors.length > 0) this.markedFrom();
    return false;
  }

  /** The values from an index on, which leave the stack. */
  popFrom(from: number): unknown[] {
    const items = this.values.slice(from, this.depth);
    this.depth = from;
    return items;
  }

  /** Keeps the top in the memo, under the next number where none is given. */
  put(number = this.puts): false {
    this.puts++;
    if (!this.#recalled.has(number)) return false;
    const value = this.top();
    const place = this.#recalled.placeOf(number);
    this.#memo[place] = value;
    this.#holders[place] = canHold(value) ? 1 : 0;
    this.#escapes += this.#holders[place]!;
    return false;
  }

  /** Keeps a value that is not on the stack in the memo, under the next number; false for one that can hold others and is recalled. */
  putPlain(value: unknown): boolean {
    const number = this.puts++;
    if (!this.#recalled.has(number)) return true;
    this.#memo[this.#recalled.placeOf(number)] = value;
    return !canHold(value);
  }

  /** Passes the next number of the memo; false if it is recalled. */
  isForgotten(): boolean {
    return !this.#recalled.has(this.puts++);
  }

  /** The value in the memo, which is not pushed; undefined for what can hold others. */
  plainAt(number: number): unknown {
    if (!this.#recalled.has(number)) return undefined;
    const place = this.#recalled.placeOf(number);
    return this.#holders[place] === 1 ? undefined : this.#memo[place];
  }

  get(number: number): false {
    const place = this.#recalled.has(number) ? this.#recalled.placeOf(number) : -1;
    let value = this.#memo[place];
    if (this.#holders[place] === 1) {
      this.#escapes++;
      if (value instanceof PickleRecord) value = value.built;
    }
    if (value === undefined) throw this.#cursor.corrupt(`the pickle recalls memo ${number}, which it never stored`);
    return this.push(value, VALUE_COST);
  }
}

const canHold = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !(value instanceof PickleGlobal) && !(value instanceof PickleNumbers);
