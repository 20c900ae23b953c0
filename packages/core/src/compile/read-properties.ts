/** The properties of observed objects that a function has read, and whether they are as they were. */
import { ownValue, propertyWrites } from "../device/observed";

type Key = string | symbol;

interface ReadProperty {
  readonly object: object;
  readonly key: Key;
  read(): unknown;
  readonly value: unknown;
}

/** A list, map, set or plain object that a property holds: writes into it are not counted. */
interface Contents {
  readonly container: object;
  readonly items: readonly unknown[];
  readonly of: ReadProperty;
}

export class ReadProperties {
  /** By object and key; null: the function wrote it before it read it. */
  readonly #seen = new Map<object, Map<Key, ReadProperty | null>>();
  readonly #opened = new Map<object, Contents>();
  #read: readonly ReadProperty[] = [];
  #contents: readonly Contents[] = [];
  #writes = -1;

  /** @param read must give the same while nobody writes, see `propertyWritten` */
  reads(object: object, key: Key, read = () => ownValue(object, key)): void {
    const keys = this.#keysOf(object);
    if (keys.has(key)) return;
    keys.set(key, null); // an accessor may read itself
    const property = { object, key, read, value: read() };
    keys.set(key, property);
    this.#open(property.value, property);
  }

  writes(object: object, key: Key): void {
    const keys = this.#keysOf(object);
    if (!keys.has(key)) keys.set(key, null);
  }

  #keysOf(object: object): Map<Key, ReadProperty | null> {
    const known = this.#seen.get(object);
    if (known !== undefined) return known;
    const keys = new Map<Key, ReadProperty | null>();
    this.#seen.set(object, keys);
    return keys;
  }

  /** Notes the items of a container, and of those in it. */
  #open(value: unknown, of: ReadProperty): void {
    if (!isContainer(value) || this.#opened.has(value)) return;
    const items = itemsOf(value);
    this.#opened.set(value, { container: value, items, of });
    for (const item of items) this.#open(item, of);
  }

  /** The function has ended. What it changed itself is its own, and no condition of its next call. */
  end(): void {
    const all = [...this.#seen.values()].flatMap((keys) => [...keys.values()]);
    this.#read = all.filter((one) => one !== null).filter(isAsRead);
    this.#contents = [...this.#opened.values()].filter((one) => !isConstant(one.container) && hasItems(one));
    this.#writes = propertyWrites();
    this.#seen.clear();
    this.#opened.clear();
  }

  /** The first that is another now, in words: "p of Dropout". */
  get changed(): string | undefined {
    const writes = propertyWrites();
    if (writes !== this.#writes) {
      for (const one of this.#read) if (!isAsRead(one)) return nameOf(one);
      this.#writes = writes;
    }
    for (const one of this.#contents) if (!hasItems(one)) return nameOf(one.of);
    return undefined;
  }
}

const nameOf = ({ object, key }: ReadProperty) =>
  `${typeof key === "symbol" ? key.description : key} of ${object.constructor?.name ?? "an object"}`;

const isAsRead = ({ read, value }: ReadProperty) => Object.is(read(), value);

function isContainer(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value) || value instanceof Map || value instanceof Set) return true;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Frozen lists and plain objects. Maps and sets can be written all the same. */
const isConstant = (container: object) =>
  Object.isFrozen(container) && !(container instanceof Map || container instanceof Set);

function itemsOf(container: object): unknown[] {
  if (Array.isArray(container)) return [...container];
  if (container instanceof Map) return [...container].flat(1);
  return container instanceof Set ? [...container] : Object.entries(container).flat(1);
}

/** Asked in each call: lists, the most usual ones, are compared without a copy. */
function hasItems({ container, items }: Contents): boolean {
  const now = Array.isArray(container) ? container : itemsOf(container);
  if (now.length !== items.length) return false;
  for (let i = 0; i < items.length; i++) if (!Object.is(now[i], items[i])) return false;
  return true;
}
