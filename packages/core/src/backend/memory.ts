/** Device memory as launches name it. */

/** Device memory, opaque to core. */
export interface Memory {
  readonly bytes: number;
}

/** `length` elements of a dtype that the kernel knows, from `byteOffset` (a multiple of the element size). */
export interface Slice {
  readonly memory: Memory;
  readonly byteOffset: number;
  readonly length: number;
  /** The number of its first element, where a rule's launch rounds it at random. */
  readonly place?: number;
}

/** A scalar of a rule's launch: a number, or one element of the rule's dtype that the device has, as it is when the launch runs. */
export type Scalar = number | Slice;

/** All memory that a launch touches. */
export function* slicesOf(value: unknown): Generator<Slice> {
  if (typeof value !== "object" || value === null) return;
  if ("memory" in value && "byteOffset" in value) yield value as Slice;
  else if (Array.isArray(value)) for (const item of value) yield* slicesOf(item);
  else if ("kind" in value)
    for (const item of Object.values(value)) if (Array.isArray(item) || isSlice(item)) yield* slicesOf(item);
}

function isSlice(value: unknown): boolean {
  return typeof value === "object" && value !== null && "memory" in value;
}
