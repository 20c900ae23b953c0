/** Keys and values of positions that were computed: position p is in slot p of its row. */
import { check, type Device, type DType, keep, noGrad, type Tensor, where, zeros } from "@opt/core";
import { checkExtents } from "../check";
import type { ModelConfig } from "../config/config";

/** Products over more keys are cut into pieces: of this many each, wherever a sequence ends. */
const PIECE = 512;

/** How many keys are multiplied for so many positions. Sums then have the same words for every length. */
export function alignedKeys(positions: number): number {
  return positions <= PIECE ? positions : Math.ceil(positions / PIECE) * PIECE;
}

/** Keys and values as tensors, for compiled functions too. */
export interface Slots {
  readonly capacity: number;
  /** By layer. */
  readonly layers: readonly { readonly keys: Tensor; readonly values: Tensor }[];
}

export interface CacheOptions {
  /** Rows: sequences side by side. Default 1. */
  readonly batch?: number;
  /** Positions that it holds at least. */
  readonly capacity: number;
}

/**
 * The memory of a generation: keys and values of each layer, [rows, heads, capacity, headDim]. Give it to `forward` with the position at
 * which the tokens are.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * const model = languageModel({ model_type: "gpt2", vocab_size: 50, n_positions: 16, n_embd: 8, n_layer: 1, n_head: 2 });
 * const cache = new KeyValueCache(model, { capacity: 8 });
 * model.forward(tensor([[3, 1, 4]], { dtype: "i32" }), { cache, at: 0 });
 * model.forward(tensor([[1]], { dtype: "i32" }), { cache, at: 3 }).shape; // [1, 1, 50]
 */
export class KeyValueCache implements Slots {
  readonly capacity: number;
  readonly layers: Slots["layers"];

  constructor(model: { config: ModelConfig; dtype: DType; device: Device }, { batch = 1, capacity }: CacheOptions) {
    checkExtents("KeyValueCache", { batch, capacity });
    const { dtype, device, config } = model;
    const { kvHeads, headDim, layers } = config;
    this.capacity = alignedKeys(capacity);
    const empty = () => keep(zeros([batch, kvHeads, this.capacity, headDim], { dtype, device }));
    this.layers = Array.from({ length: layers }, () => ({ keys: empty(), values: empty() }));
  }

  dispose(): void {
    for (const { keys, values } of this.layers) for (const tensor of [keys, values]) tensor.dispose();
  }
}

/**
 * Writes keys or values [rows, heads, places, headDim] into their slots: from slot `at` on, or, of one place, where `isSlot` says.
 *
 * @throws OptError BAD_ARGUMENT past the end
 */
export function writeSlots(slots: Tensor, given: Tensor, at: number | Tensor, isSlot: () => Tensor): void {
  const [end, capacity] = [typeof at === "number" ? at + given.shape[2]! : 0, slots.shape[2]!];
  const problem = () => `the cache must hold ${end} positions, got a capacity of ${capacity}.`;
  check(end <= capacity, "BAD_ARGUMENT", "KeyValueCache", problem, "Make it larger.");
  noGrad(() => {
    if (typeof at === "number") slots.assign([null, null, [at, end]], given);
    else slots.set(where(isSlot(), given, slots));
  });
}
