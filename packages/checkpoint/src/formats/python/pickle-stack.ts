/** The stack and the memo of a pickle's machine, and what all that they hold takes in memory. */
import type { ByteCursor } from "../bytes/cursor";
import type { RecalledNumbers } from "./pickle-memo";
import { PickleGlobal, PickleNumbers } from "./pickle-objects";

const MARK = Symbol("mark");

// What values take in memory, about: an opcode of one byte may make an object of hundreds. Real pickles take 30 times their length.
const OBJECT_COST = 160;
const DICT_COST = 288;
const MEMO_COST = 48;
const VALUE_COST = 16;
const RECORD_COST = 32;
const FREE_COST = 64 * 1024 * 1024;
const COST_PER_BYTE = 32;
const HIGHEST_COST = 1536 * 1024 * 1024;

/** What was spent when an object was made whose parts are freed once it is a record. */
interface Begun {
  readonly depth: number;
  readonly budget: number;
  readonly kept: number;
  readonly escapes: number;
}

export class PickleStack {
  readonly #cursor: ByteCursor;
  readonly #values: unknown[] = [];
  #depth = 0;
  readonly #marks: number[] = [];
  readonly #recalled: RecalledNumbers;
  readonly #memo: unknown[];
  #puts = 0;
  #budget: number;
  /** What records took of the budget: they stay. */
  #kept = 0;
  /** How often an object that can hold others went to the memo, or came from there: it may hold anything made since. */
  #escapes = 0;
  readonly #begun: Begun[] = [];

  /** `memory`: about how many bytes the objects may take. The cursor is for messages. */
  constructor(cursor: ByteCursor, recalled: RecalledNumbers, memory?: number) {
    this.#cursor = cursor;
    this.#budget = memory ?? Math.min(HIGHEST_COST, FREE_COST + COST_PER_BYTE * cursor.source.byteLength);
    this.#recalled = recalled;
    this.#spend(recalled.count * MEMO_COST);
    this.#memo = new Array(recalled.count).fill(undefined);
  }

  push(value: unknown): false {
    const isObject = typeof value === "object" && value !== null;
    this.#spend(isObject ? (value instanceof Map ? DICT_COST : OBJECT_COST) : VALUE_COST);
    this.#values[this.#depth++] = value;
    return false;
  }

  /** Pushes what is held elsewhere too. */
  share(value: unknown): false {
    this.#spend(VALUE_COST);
    this.#values[this.#depth++] = value;
    return false;
  }

  #spend(cost: number): void {
    this.#budget -= cost;
    if (this.#budget < 0)
      throw this.#cursor.corrupt("the pickle holds too many objects for its length (see maxObjects)");
  }

  /** Pushes an object that a record replaces later. */
  begin(value: unknown): false {
    const depth = this.#depth;
    while (this.#begun.length > 0 && this.#begun.at(-1)!.depth >= depth) this.#begun.pop();
    this.#begun.push({ depth, budget: this.#budget, kept: this.#kept, escapes: this.#escapes });
    return this.push(value);
  }

  /** Replaces the top. All that was made since it was begun is free again, unless some of it may be held elsewhere. */
  finish(record: unknown): false {
    const depth = this.#depth - 1;
    while (this.#begun.length > 0 && this.#begun.at(-1)!.depth > depth) this.#begun.pop();
    const begun = this.#begun.pop();
    if (begun?.depth === depth && begun.escapes === this.#escapes)
      this.#budget = begun.budget - (this.#kept - begun.kept);
    this.#kept += RECORD_COST;
    this.#spend(RECORD_COST);
    this.#values[depth] = record;
    return false;
  }

  mark(): false {
    this.#marks.push(this.#depth);
    return this.push(MARK);
  }

  top(): unknown {
    const value = this.#depth > 0 ? this.#values[this.#depth - 1] : undefined;
    if (value === undefined || value === MARK) throw this.#cursor.corrupt("the pickle takes from an empty stack");
    return value;
  }

  duplicate(): false {
    this.#escapes++;
    return this.push(this.top());
  }

  pop(): unknown {
    const value = this.top();
    this.#depth--;
    return value;
  }

  /** Whatever is on top, a mark too; nothing of an empty stack. */
  drop(): false {
    if (this.#depth > 0 && this.#values[--this.#depth] === MARK) this.#marks.pop();
    return false;
  }

  popMany(count: number): unknown[] {
    const items = new Array<unknown>(count);
    for (let i = count - 1; i >= 0; i--) items[i] = this.pop();
    return items;
  }

  popToMark(): unknown[] {
    const mark = this.#marks.pop();
    if (mark === undefined) throw this.#cursor.corrupt("the pickle closes what it never opened");
    const items = this.#values.slice(mark + 1, this.#depth);
    this.#depth = mark;
    return items;
  }

  /** Keeps the top in the memo, under the next number where none is given. */
  put(number = this.#puts): false {
    const value = this.top();
    this.#puts++;
    if (!this.#recalled.has(number)) return false;
    if (canHold(value)) this.#escapes++;
    this.#memo[this.#recalled.placeOf(number)] = value;
    return false;
  }

  get(number: number): false {
    const value = this.#recalled.has(number) ? this.#memo[this.#recalled.placeOf(number)] : undefined;
    if (value === undefined) throw this.#cursor.corrupt(`the pickle recalls memo ${number}, which it never stored`);
    if (canHold(value)) this.#escapes++;
    return this.share(value);
  }
}

const canHold = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !(value instanceof PickleGlobal) && !(value instanceof PickleNumbers);
