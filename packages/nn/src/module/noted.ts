/** Modules that a recorded step calls: its replays are refused once one of them holds, or is set to, something else. */
import { check, guardReplays, recordedStep, show, Tensor } from "@opt/core";

/** @internal Of a module that keeps others out of sight: an object that is another one whenever they are. */
export const contents: unique symbol = Symbol.for("@opt/nn.contents");

/** One thing that a module holds. */
interface Part {
  readonly name: string;
  readonly read: () => unknown;
  readonly value: unknown;
}

const noted = new WeakMap<object, Set<object>>();
const watched = new WeakSet<object>();

/** Lets the methods of a module's class, and of those that it extends up to `base`, tell recorded steps of the module that they are called on. */
export function watchMethods(prototype: object, base: object): void {
  for (let at = prototype; at !== base && !watched.has(at); at = Object.getPrototypeOf(at)) {
    watched.add(at);
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      const { value, configurable = false } = property;
      if (name !== "constructor" && typeof value === "function" && configurable)
        Object.defineProperty(at, name, { ...property, value: watching(value) });
    }
  }
}

function watching(method: (...args: unknown[]) => unknown): (this: object, ...args: unknown[]) => unknown {
  return function (...args) {
    const step = recordedStep();
    if (step === null) return method.apply(this, args);
    const modules = noted.get(step) ?? new Set();
    noted.set(step, modules);
    if (modules.has(this)) return method.apply(this, args);
    modules.add(this);
    const parts = [...partsOf(this, "", [])];
    const result = method.apply(this, args);
    // What the call itself changes, a count of calls for example, is not what the step depends on.
    const lasting = parts.filter(({ read, value }) => Object.is(read(), value));
    guardReplays(() => {
      for (const part of lasting) if (!Object.is(part.read(), part.value)) refuse(this, part);
    });
    return result;
  };
}

function refuse(module: object, { name, read, value }: Part): void {
  const words = (one: unknown) =>
    typeof one === "object" && one !== null ? `another ${one.constructor?.name}` : show(one);
  const problem = () => `${name} was ${show(value)} when the step was recorded, and is ${words(read())}.`;
  const advice =
    name === "training"
      ? `Call ${value ? "train" : "eval"}() before replay(), or record the step again.`
      : "Record the step again.";
  check(false, "BAD_STATE", module.constructor.name, problem, advice);
}

/** What lies in a module, array, map, set or plain object, however deep; of modules in it, which tell of themselves, only what they keep out of sight. */
function* partsOf(holder: object, prefix: string, holders: readonly object[]): Generator<Part> {
  if (holders.includes(holder)) return;
  for (const [key, read] of readers(holder)) {
    const name = prefix + key;
    const value = read();
    yield { name, read, value };
    if (isHolder(value)) yield* partsOf(value, `${name}.`, [...holders, holder]);
  }
}

/** How each thing that it holds is read, by name, and their number. */
function* readers(holder: object): Generator<[string, () => unknown]> {
  if (contents in holder) {
    yield ["modules", () => holder[contents]];
  } else if (Array.isArray(holder)) {
    yield ["length", () => holder.length];
    for (const i of holder.keys()) yield [String(i), () => holder[i]];
  } else if (holder instanceof Map) {
    yield ["size", () => holder.size];
    for (const key of holder.keys()) yield [String(key), () => holder.get(key)];
  } else if (holder instanceof Set) {
    yield ["size", () => holder.size];
    for (const item of holder) yield [show(item), () => holder.has(item)];
  } else {
    yield ["number of properties", () => Object.keys(holder).length];
    const own = holder as Readonly<Record<string, unknown>>;
    for (const key of Object.keys(own)) yield [key, () => own[key]];
  }
}

function isHolder(value: unknown): value is object {
  if (typeof value !== "object" || value === null || value instanceof Tensor) return false;
  const isList = Array.isArray(value) || value instanceof Map || value instanceof Set || contents in value;
  return isList || Object.getPrototypeOf(value) === Object.prototype;
}
