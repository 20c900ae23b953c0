/** Tensors of a module exchanged where it holds them: in its properties, and in their arrays, maps, sets and plain objects. */
import { Tensor } from "@opt/core";

type Exchange = (tensor: Tensor) => Tensor;

/** Every tensor in place of itself, which may be the same. Child modules are left alone. */
export function replaceTensors(module: object, exchange: Exchange): void {
  const record = module as Record<string, unknown>;
  for (const [name, value] of Object.entries(record)) {
    const next = exchanged(value, exchange);
    if (next !== value) record[name] = next;
  }
}

function exchanged(value: unknown, exchange: Exchange): unknown {
  if (value instanceof Tensor) return exchange(value);
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Map) for (const [key, item] of value) value.set(key, exchanged(item, exchange));
  else if (value instanceof Set) {
    const items = [...value].map((item) => exchanged(item, exchange));
    value.clear();
    for (const item of items) value.add(item);
  } else if (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype) replaceTensors(value, exchange);
  return value;
}
