/** What is measured: one optimizer step, by one implementation, on one kind of work. */

export type OptimizerName = "AdamW" | "AMSGrad" | "NAdam";

/** `tensors` parameters of `size` float32 elements each, with default options and gradients that never change. */
export interface Work {
  readonly optimizer: OptimizerName;
  readonly tensors: number;
  readonly size: number;
}

/** An implementation, set up for one kind of work. */
export interface Session {
  /** Runs steps to their end and returns the milliseconds they took. */
  run(steps: number): Promise<number>;
  /** The first parameters of the first tensor, to be checked. */
  result(count: number): Promise<number[]>;
  close(): Promise<void>;
}

export interface Contender {
  readonly name: string;
  /** Largest relative difference of its result from ours after the same steps; null: it computes something else (the memory limit). */
  readonly tolerance: number | null;
  /** A session, or why there is none for this work. */
  open(work: Work): Promise<Session | string>;
}

/** Deterministic first parameters: in [-1, 1), never tiny. */
export function firstParameters(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => Math.fround((((i * 7919) % 2000) - 1000) / 1000 + 0.0005));
}

/** Deterministic gradients of both signs, around 0.01. */
export function gradients(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => Math.fround((((i * 104729) % 199) - 99) / 9900 + 0.00005));
}

/** A session around a function that does one step and waits for it. */
export async function timed(steps: number, step: () => unknown, wait: () => unknown = () => {}): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < steps; i++) {
    const pending = step();
    if (pending instanceof Promise) await pending;
  }
  await wait();
  return performance.now() - start;
}
