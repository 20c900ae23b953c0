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
  /** The number of its first element, for stochastic rounding in a rule's launch. */
  readonly place?: number;
}

/** A scalar of a rule's launch: a number, or one element of the rule's dtype that the device has, as it is when the launch runs. */
export type Scalar = number | Slice;
