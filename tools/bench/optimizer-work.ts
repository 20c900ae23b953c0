/** The work of the optimizer benchmarks, and the values that every contender begins with. */

export const OPTIMIZER_NAMES = [
  ...(["AdamW", "AMSGrad", "NAdam", "SGD", "RMSprop", "Adamax", "RAdam"] as const),
  ...(["Adagrad", "Adadelta", "ASGD", "Rprop", "Lion", "Adafactor"] as const),
] as const;
/** Those whose step has products of whole matrices. */
export const MATRIX_OPTIMIZERS = ["Muon", "SOAP", "Shampoo", "Kron", "GaLore", "APOLLO"] as const;
export type OptimizerName = (typeof OPTIMIZER_NAMES)[number] | (typeof MATRIX_OPTIMIZERS)[number];

/** One step over `tensors` parameters of `size` float32 elements each, with default options (SGD: a momentum of 0.9) and gradients that never change. */
export interface OptimizerWork {
  readonly optimizer: OptimizerName;
  readonly tensors: number;
  readonly size: number;
  /** Of matrices; without it the parameters are vectors. */
  readonly rows?: number;
  /** Gradients of full rank: those of the others repeat after 199 numbers. */
  readonly isMixed?: boolean;
}

/** Deterministic first parameters: in [-1, 1), never tiny. */
export function firstParameters(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => Math.fround((((i * 7919) % 2000) - 1000) / 1000 + 0.0005));
}

/** Deterministic gradients of both signs, around 0.01. */
export function gradients(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => Math.fround((((i * 104729) % 199) - 99) / 9900 + 0.00005));
}

/** Deterministic gradients around 0.01 whose matrices have full rank. */
export function mixedGradients(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) =>
    Math.fround((((((i * i) % 100003) * 7919 + i) % 100003) - 50001) / 5000100),
  );
}
