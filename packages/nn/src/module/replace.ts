/** Tensors of a module exchanged where it holds them: in its properties, and in their arrays, maps, sets and plain objects. */
import { Tensor } from "@opt/core";

type Exchange = (tensor: Tensor) => Tensor;
/** Puts a value under a name of an object. */
type PutValue = (holder: object, name: string, value: unknown) => void;

/** Every tensor in place of itself, which may be the same. Child modules are left alone. */
export function replaceTensors(module: object, exchange: Exchange): void {
  const put: PutValue = (holder, name, value) => {
    (holder as Record<string, unknown>)[name] = value;
  };
  walk(module, exchange, put, []);
}

/** The same for a while, past the checks of properties: the result puts everything back. */
export function substituteTensors(modules: readonly object[], exchange: Exchange): () => void {
  const undo: (() => void)[] = [];
  const restore = () => {
    for (const back of undo.splice(0).reverse()) back();
  };
  const put: PutValue = (holder, name, value) => {
    const before = Object.getOwnPropertyDescriptor(holder, name)!;
    Object.defineProperty(holder, name, { configurable: true, enumerable: true, writable: true, value });
    undo.push(() => Object.defineProperty(holder, name, before));
  };
  try {
    for (const module of modules) walk(module, exchange, put, undo);
  } catch (error) {
    restore();
    throw error;
  }
  return restore;
}

function walk(holder: object, exchange: Exchange, put: PutValue, undo: (() => void)[]): void {
  for (const [name, value] of Object.entries(holder)) {
    const next = exchanged(value, exchange, put, undo);
    if (next !== value) put(holder, name, next);
  }
}

function exchanged(value: unknown, exchange: Exchange, put: PutValue, undo: (() => void)[]): unknown {
  if (value instanceof Tensor) return exchange(value);
  if (typeof value !== "object" || value === null) return value;
  const inside = (item: unknown) => exchanged(item, exchange, put, undo);
  if (value instanceof Map) {
    const entries = [...value];
    for (const [key, item] of entries) value.set(key, inside(item));
    undo.push(() => {
      for (const [key, item] of entries) value.set(key, item);
    });
  } else if (value instanceof Set) {
    const items = [...value];
    refill(value, items.map(inside));
    undo.push(() => refill(value, items));
  } else if (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype) {
    walk(value, exchange, put, undo);
  }
  return value;
}

function refill(set: Set<unknown>, items: readonly unknown[]): void {
  set.clear();
  for (const item of items) set.add(item);
}
