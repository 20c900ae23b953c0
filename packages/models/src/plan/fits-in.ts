/** How much memory a training step or a generation will take, before it begins. */
import { checkOptions, type Device, defaultGenerator, noGrad, type Tensor, tensor, tidy } from "@opt/core";
import { byteSize } from "@opt/core/backend";
import type { Module } from "@opt/nn";
import { isOfAdapter } from "../adapters/linear-layers";
import { checkExtents } from "../check";
import { causalLoss } from "../data/causal-loss";

/** A language model: tokens i32 [batch, length] in, logits out. */
export interface PlannedModel extends Module {
  forward(tokens: Tensor): Tensor;
  /** Sizes of what a generation keeps, where the model has a cache. */
  readonly config?: unknown;
}

/** What is asked of an optimizer. */
export interface PlannedOptimizer {
  step(): unknown;
  zeroGrad(): void;
  stateDict(): object;
  loadStateDict(state: never): void;
}

export interface FitsInOptions {
  /** Sequences of a step. */
  readonly batch: number;
  /** Tokens of a sequence. */
  readonly length: number;
  /** That has made no step yet. Without one the plan is of generation. */
  readonly optimizer?: PlannedOptimizer;
}

/** Bytes on the model's device. */
export interface MemoryPlan {
  /** The most at once: all parts. */
  readonly bytes: number;
  readonly parts: {
    /** Of the model, buffers too. */
    readonly weights: number;
    readonly adapter: number;
    readonly gradients: number;
    /** Of the optimizer. */
    readonly state: number;
    /** Results that wait for backward, and what a step computes meanwhile. */
    readonly activations: number;
    /** Keys and values of a generation. */
    readonly cache: number;
  };
}

/**
 * Plans the memory of eager training steps with `causalLoss`, or of generation. It makes steps of a quarter of the length with one and two
 * sequences and half of the length with one, and computes what longer ones take; weights, optimizer and the default generator are then as
 * they were. Call it before training. Compiled steps need more in the calls that are traced and checked.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * const model = new Sequential(new Embedding(32, 8), new Linear(8, 32));
 * lora(model, { rank: 2, targets: ["1"] });
 * const { bytes, parts } = fitsIn(model, { batch: 4, length: 64, optimizer: new AdamW(model.namedParameters()) });
 * if (bytes > 2 ** 30) throw new Error(`needs ${bytes} bytes, ${parts.activations} of them for activations`);
 */
export function fitsIn(model: PlannedModel, options: FitsInOptions): MemoryPlan {
  checkOptions("fitsIn", options, { batch: "number", length: "number", optimizer: "object" });
  const { batch, length, optimizer } = options;
  const { layers = 0, kvHeads = 0, headDim = 0 } = (model.config ?? {}) as Record<string, number>;
  checkExtents("fitsIn", { batch, length });
  const tensors = [...new Map([...model.namedTensors(), ...model.namedBuffers()].map(([name, each]) => [each, name]))];
  const sum = (own: boolean) => total(tensors.flatMap(([each, name]) => (isOfAdapter(name) === own ? [each] : [])));
  const trained = optimizer ? model.parameters({ trainable: true }) : [];
  const generator = defaultGenerator.stateDict();
  const { device, dtype } = tensors[0]![0];
  const peak = (rows: number, places: number) => {
    const most = peakOf(device, () => pass(model, device, rows, places, !optimizer));
    for (const each of trained) each.grad = null;
    return most;
  };
  try {
    const gradients = total(trained);
    const quarter = Math.floor(length / 4);
    const all = quarter < 2 ? peak(batch, length) : extrapolated(peak, quarter)(batch, length);
    const state = optimizer ? stateOf(optimizer, trained, () => pass(model, device, 1, 2, false)) : 0;
    const parts = {
      ...{ weights: sum(false), adapter: sum(true), gradients, state },
      activations: Math.max(0, Math.round(all) - gradients),
      cache: optimizer ? 0 : 2 * byteSize(dtype) * layers * batch * kvHeads * headDim * length,
    };
    return { bytes: Object.values(parts).reduce((a, b) => a + b), parts };
  } finally {
    defaultGenerator.loadStateDict(generator);
  }
}

const total = (tensors: readonly Tensor[]) => tensors.reduce((sum, { size, dtype }) => sum + size * byteSize(dtype), 0);

/** Forward, and backward, which leaves no gradient. */
function pass(model: PlannedModel, device: Device, rows: number, places: number, isForward: boolean): void {
  const ids = () => tensor(new Int32Array(rows * places), { shape: [rows, places], device });
  tidy(() => {
    if (isForward) return noGrad(() => void model.forward(ids()));
    const { sum, count } = causalLoss(model.forward(ids()), ids());
    sum.div(count).backward();
  });
}

type Bytes = (rows: number, places: number) => number;

/** What a step takes is c0 + rows (c1 places + c2 places^2): three steps of `q` places or twice as many say the three. */
function extrapolated(peak: Bytes, q: number): Bytes {
  const [one, longer, two] = [peak(1, q), peak(1, 2 * q), peak(2, q)];
  const square = (longer - two) / 2;
  const line = two - one - square;
  return (rows, places) => one - line - square + rows * (line * (places / q) + square * (places / q) ** 2);
}

/** The most bytes that a body takes at once, beside what lives already. */
function peakOf(device: Device, body: () => void): number {
  const { pool } = device;
  const { allocate, bytes: before } = pool;
  let most = before;
  pool.allocate = (bytes) => {
    const memory = allocate.call(pool, bytes);
    most = Math.max(most, pool.bytes);
    return memory;
  };
  try {
    body();
  } finally {
    pool.allocate = allocate;
  }
  return most - before;
}

/** What the optimizer holds after a step, which is taken back. */
function stateOf(optimizer: PlannedOptimizer, trained: readonly Tensor[], backward: () => void): number {
  const { device } = trained[0]!;
  const weights = tidy(() => trained.map((each) => each.detach().clone()));
  const before = optimizer.stateDict();
  const { bytes } = device.memory();
  try {
    backward();
    optimizer.step();
    optimizer.zeroGrad();
    for (const each of trained) each.grad = null;
    return device.memory().bytes - bytes;
  } finally {
    for (const [i, each] of trained.entries()) each.set(weights[i]!);
    for (const each of weights) each.dispose();
    optimizer.loadStateDict(before as never);
  }
}
