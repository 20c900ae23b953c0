/** The work of the optimizer benchmarks, and the values that every contender begins with. */

export const OPTIMIZER_NAMES = [
  ...(["AdamW", "AMSGrad", "NAdam", "SGD", "RMSprop", "Adamax", "RAdam"] as const),
  ...(["Adagrad", "Adadelta", "ASGD", "Rprop", "Lion", "Adafactor"] as const),
] as const;
export type OptimizerName = (typeof OPTIMIZER_NAMES)[number];

/** One step over `tensors` parameters of `size` float32 elements each, with default options (SGD: a momentum of 0.9) and gradients that never change. */
export interface OptimizerWork {
  readonly optimizer: OptimizerName;
  readonly tensors: number;
  readonly size: number;
  /** Of matrices; without it the parameters are vectors. */
  readonly rows?: number;
}

/** Deterministic first parameters: in [-1, 1), never tiny. */
export function firstParameters(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => Math.fround((((i * 7919) % 2000) - 1000) / 1000 + 0.0005));
}

/** Deterministic gradients of both signs, around 0.01. */
export function gradients(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => Math.fround((((i * 104729) % 199) - 99) / 9900 + 0.00005));
}
