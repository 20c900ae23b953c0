/** The stack and the memo of a pickle's machine, and what all that they have held takes in memory. */
import type { ByteCursor } from "../bytes/cursor";

const MARK = Symbol("mark");

// What values take in memory, about: an opcode of one byte may make an object of hundreds. Real pickles take 30 times their length.
const OBJECT_COST = 160;
const DICT_COST = 288;
const MEMO_COST = 48;
const VALUE_COST = 16;
const FREE_COST = 64 * 1024 * 1024;
const COST_PER_BYTE = 32;
const HIGHEST_COST = 1536 * 1024 * 1024;

export class PickleStack {
  readonly #cursor: ByteCursor;
  #budget: number;
  readonly #values: unknown[] = [];
  readonly #memo = new Map<number, unknown>();

  /** `memory`: about how many bytes the objects may take. The cursor is for messages. */
  constructor(cursor: ByteCursor, memory?: number) {
    this.#cursor = cursor;
    this.#budget = memory ?? Math.min(HIGHEST_COST, FREE_COST + COST_PER_BYTE * cursor.source.byteLength);
  }

  push(value: unknown): false {
    this.#spend(
      value instanceof Map ? DICT_COST : typeof value === "object" && value !== null ? OBJECT_COST : VALUE_COST,
    );
    this.#values.push(value);
    return false;
  }

  #spend(cost: number): void {
    this.#budget -= cost;
    if (this.#budget < 0)
      throw this.#cursor.corrupt("the pickle holds too many objects for its length (see maxObjects)");
  }

  mark(): false {
    return this.push(MARK);
  }

  top(): unknown {
    const value = this.#values.at(-1);
    if (value === undefined || value === MARK) throw this.#cursor.corrupt("the pickle takes from an empty stack");
    return value;
  }

  pop(): unknown {
    const value = this.top();
    this.#values.pop();
    return value;
  }

  /** Whatever is on top, a mark too; nothing of an empty stack. */
  drop(): false {
    this.#values.pop();
    return false;
  }

  popMany(count: number): unknown[] {
    const items = this.#values.splice(Math.max(0, this.#values.length - count));
    if (items.length < count || items.includes(MARK))
      throw this.#cursor.corrupt("the pickle takes from an empty stack");
    return items;
  }

  popToMark(): unknown[] {
    const mark = this.#values.lastIndexOf(MARK);
    if (mark < 0) throw this.#cursor.corrupt("the pickle closes what it never opened");
    const items = this.#values.splice(mark + 1);
    this.#values.pop();
    return items;
  }

  /** Keeps the top in the memo, under the next number where none is given. */
  put(index = this.#memo.size): false {
    this.#spend(MEMO_COST);
    this.#memo.set(index, this.top());
    return false;
  }

  get(index: number): false {
    const value = this.#memo.get(index);
    if (value === undefined) throw this.#cursor.corrupt(`the pickle recalls memo ${index}, which it never stored`);
    this.#spend(VALUE_COST);
    this.#values.push(value);
    return false;
  }
}
