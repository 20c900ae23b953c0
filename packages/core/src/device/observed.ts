/** Objects whose properties compiled functions follow: a trace is valid while those that it read are as they were. */
import { checkValue } from "../errors/check-value";
import { shared } from "../host/shared";
import { activeTracer } from "./tracer";

const state = /* @__PURE__ */ shared("observed", () => ({
  /** Counts writes to the properties of all observed objects. While it stays, nobody compares properties. */
  writes: 0,
  /** What accessors of an object take for `this`. */
  proxies: new WeakMap<object, object>(),
}));

export const propertyWrites = (): number => state.writes;

/** In place of a key: the list of keys. */
const KEYS: unique symbol = Symbol("the list of properties");
const ABSENT: unique symbol = Symbol("absent");

/** What an object has under a key by itself. Methods and accessors of its class do not count: these read other properties. */
export function ownValue(object: object, key: string | symbol): unknown {
  if (key === KEYS) return Reflect.ownKeys(object).map(String).join();
  return Object.hasOwn(object, key) ? Reflect.get(object, key, state.proxies.get(object)) : ABSENT;
}

/** Tells it of what is no observed object and followed all the same. */
export function propertyWritten(): void {
  state.writes++;
}

function written(object: object, key: string | symbol): void {
  propertyWritten();
  activeTracer()?.writes(object, key);
}

const handler: ProxyHandler<object> = {
  get(object, key, receiver) {
    activeTracer()?.reads(object, key);
    return Reflect.get(object, key, receiver);
  },
  has(object, key) {
    activeTracer()?.reads(object, key);
    return Reflect.has(object, key);
  },
  ownKeys(object) {
    activeTracer()?.reads(object, KEYS);
    return Reflect.ownKeys(object);
  },
  set(object, key, value, receiver) {
    written(object, key);
    return Reflect.set(object, key, value, receiver);
  },
  defineProperty(object, key, descriptor) {
    written(object, key);
    return Reflect.defineProperty(object, key, descriptor);
  },
  deleteProperty(object, key) {
    written(object, key);
    return Reflect.deleteProperty(object, key);
  },
};

/**
 * The same object, whose properties compiled functions follow: a call traces again once one that the function has read is another,
 * or an item of a list, map, set or plain object in it. Modules are observed. `#private` fields are not followed.
 *
 * @throws OptError BAD_ARGUMENT unless it is an object
 * @example
 * const settings = observed({ scale: 2 });
 * const step = compile((x) => x.mul(settings.scale));
 * step(tensor([1])); // [2]
 * settings.scale = 3;
 * step(tensor([1])); // [3]
 */
export function observed<T extends object>(object: T): T {
  const isObject = typeof object === "object" && object !== null;
  checkValue(isObject, "observed", "the argument", "an object", object);
  const proxy = new Proxy(object, handler) as T;
  state.proxies.set(object, proxy);
  return proxy;
}
