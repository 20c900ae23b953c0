/** Statements of one function: assignments, control flow, effects. */
import { type Code, unsigned } from "./encoding";
import { type Effect, type Local, local, type Operand, push, TYPE_BYTE, type Value, type ValueType } from "./value";

const VOID = 0x40;

/** In code, this plus k stands for the index of the module's k-th own function: imports, which come first, may still be added. */
export const OWN_FUNCTION = 256;

export class FunctionBuilder {
  readonly #parameters: number;
  readonly #locals: ValueType[] = [];
  readonly #code: number[] = [];
  /** By their code, the constants that are set at entry. */
  readonly #constants = new Map<string, Local<"v128">>();

  constructor(parameters: number) {
    this.#parameters = parameters;
  }

  /** A fresh local, 0 at entry. With `initial` it is set here. */
  local<T extends ValueType>(type: T, initial?: Operand<T>): Local<T> {
    const variable = local(type, this.#parameters + this.#locals.length);
    this.#locals.push(type);
    if (initial !== undefined) this.set(variable, initial);
    return variable;
  }

  /** A vector constant in a local that is set once, at entry: engines build vector constants again in each turn of a loop. */
  constant(value: Value<"v128">): Local<"v128"> {
    const key = value.code.join();
    let variable = this.#constants.get(key);
    if (variable === undefined) {
      variable = this.local("v128");
      this.#constants.set(key, variable);
    }
    return variable;
  }

  /** A fresh local with the smaller of two unsigned numbers. */
  least(a: Operand<"i32">, b: Operand<"i32">): Local<"i32"> {
    const smaller = this.local("i32", a);
    const isGreater = { type: "i32", code: [...smaller.code, ...push("i32", b), 0x4b] } as const;
    this.if(isGreater, () => this.set(smaller, b));
    return smaller;
  }

  set<T extends ValueType>(variable: Local<T>, value: Operand<T>): void {
    this.#emit(push(variable.type, value), [0x21, ...unsigned(variable.index)]);
  }

  increase(variable: Local<"i32">, by: Operand<"i32">): void {
    this.set(variable, { type: "i32", code: [...variable.code, ...push("i32", by), 0x6a] });
  }

  decrease(variable: Local<"i32">, by: Operand<"i32">): void {
    this.set(variable, { type: "i32", code: [...variable.code, ...push("i32", by), 0x6b] });
  }

  /** Stores, copies and calls without a result. */
  do(effect: Effect): void {
    this.#emit(effect.code);
  }

  /** The closures run at once and write in place. */
  if(condition: Operand<"i32">, then: () => void, otherwise?: () => void): void {
    this.#emit(push("i32", condition), [0x04, VOID]);
    then();
    if (otherwise !== undefined) {
      this.#emit([0x05]);
      otherwise();
    }
    this.#emit([0x0b]);
  }

  while(condition: Operand<"i32">, body: () => void): void {
    this.if(condition, () => this.doWhile(body, condition));
  }

  /** Runs the body at least once. */
  doWhile(body: () => void, condition: Operand<"i32">): void {
    this.#emit([0x03, VOID]);
    body();
    this.#emit(push("i32", condition), [0x0d, 0], [0x0b]);
  }

  /** While `left` is at least `count`: the body, then each pointer goes on by its step, and `left` down by `count`. */
  walk(
    left: Local<"i32">,
    count: number,
    steps: readonly (readonly [pointer: Local<"i32">, step: Operand<"i32">])[],
    body: () => void,
  ): void {
    this.while({ type: "i32", code: [...left.code, ...push("i32", count), 0x4f] }, () => {
      body();
      for (const [pointer, step] of steps) this.increase(pointer, step);
      this.decrease(left, count);
    });
  }

  /** for (i = start; i < end; i += step), unsigned. The end is evaluated each time: make it a local or a constant. */
  for(i: Local<"i32">, start: Operand<"i32">, end: Operand<"i32">, step: Operand<"i32">, body: () => void): void {
    this.set(i, start);
    const more = { type: "i32", code: [...i.code, ...push("i32", end), 0x49] } as const;
    this.while(more, () => {
      body();
      this.increase(i, step);
    });
  }

  /** Fails when it is reached. */
  trap(): void {
    this.#emit([0x00]);
  }

  return(value?: Value): void {
    this.#emit(value?.code ?? [], [0x0f]);
  }

  #emit(...parts: Code[]): void {
    for (const part of parts) for (const byte of part) this.#code.push(byte);
  }

  /** The function's body in the code section of a module with so many imported functions. */
  encode(imported: number): number[] {
    const runs: { type: ValueType; count: number }[] = [];
    for (const type of this.#locals) {
      const last = runs.at(-1);
      if (last?.type === type) last.count++;
      else runs.push({ type, count: 1 });
    }
    const locals = runs.flatMap(({ type, count }) => [...unsigned(count), TYPE_BYTE[type]]);
    const constants = [...this.#constants].flatMap(([key, { index }]) => [
      ...key.split(",").map(Number),
      0x21,
      ...unsigned(index),
    ]);
    const code = [...constants, ...this.#code].flatMap((byte) =>
      byte < OWN_FUNCTION ? byte : unsigned(byte - OWN_FUNCTION + imported),
    );
    const body = [...unsigned(runs.length), ...locals, ...code, 0x0b];
    return [...unsigned(body.length), ...body];
  }
}
