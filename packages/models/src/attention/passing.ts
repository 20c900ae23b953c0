/** One pass through a model: where its tokens are, what they see, and what its layers compute once together. */
import { arange, check, cos, logicalAnd, pad, recompute, repeatInterleave, sin, type Tensor, tensor } from "@opt/core";
import { scaledDotProductAttention } from "@opt/nn";
import type { ModelConfig } from "../config/config";
import { inverseFrequencies, type Rope } from "../config/rope";
import { alignedKeys, type Slots, writeSlots } from "./cache";
import type { Rotation } from "./heads";

/** Where the tokens of a pass are. */
export interface PassOptions {
  /** Keys and values of the positions before. */
  readonly cache?: Slots;
  /** The position of the first token of each row; or i32 [rows], the position of the only token of each. Default 0. */
  readonly at?: number | Tensor;
}

export class Pass {
  /** i32 [rows or 1, places]. */
  readonly positions: Tensor;
  /** What layers share. */
  #made = new Map<string, Tensor>();
  readonly #at: number | Tensor;
  readonly #places: number;
  readonly #cache: Slots | undefined;

  /** @throws OptError BAD_ARGUMENT, BAD_SHAPE */
  constructor(
    private readonly config: ModelConfig,
    tokens: Tensor,
    { cache, at = 0 }: PassOptions,
    private readonly isRecomputed: boolean,
  ) {
    const [rows, places] = tokens.shape as [number, number];
    const isStart = typeof at === "number";
    const isWhole = cache !== undefined || at === 0;
    check(isWhole, "BAD_ARGUMENT", "forward", () => "at needs a cache with the positions before.", "Give a cache.");
    const fits = isStart || (at.shape.length === 1 && at.shape[0] === rows && places === 1);
    const shapes = () => `at must be i32 [rows] for one token of each row, got tokens [${tokens.shape}].`;
    check(fits, "BAD_SHAPE", "forward", shapes, "Give longer pieces a number.");
    this.positions = isStart
      ? arange(at, at + places, { device: tokens.device }).reshape([1, places])
      : at.reshape([rows, 1]);
    this.#at = at;
    this.#places = places;
    this.#cache = cache;
    for (const rope of config.ropes) this.rotation(rope); // outside of what is recomputed
    const keys = at === 0 ? alignedKeys(places) : cache!.capacity;
    for (const window of config.windows) if (!this.#isCausal(window)) this.#mask(keys, window);
    if (cache && !isStart) this.#slot(cache.capacity);
  }

  #once(key: string, make: () => Tensor): Tensor {
    const made = this.#made.get(key) ?? make();
    this.#made.set(key, made);
    return made;
  }

  /** Blocks after each other. Those that are recomputed run again in backward: what layers share is an input. */
  through(blocks: readonly { forward(x: Tensor, layer: number, pass: Pass): Tensor }[], x: Tensor): Tensor {
    const [made, names] = [this.#made, [...this.#made.keys()]];
    return blocks.reduce((x, block, layer) => {
      const run = (x: Tensor, ...held: readonly Tensor[]) => {
        this.#made = new Map(names.map((name, i) => [name, held[i]!]));
        try {
          return block.forward(x, layer, this);
        } finally {
          this.#made = made;
        }
      };
      return this.isRecomputed ? recompute(run, x, ...made.values()) : run(x, ...made.values());
    }, x);
  }

  /** The rotation of a kind of layers. */
  rotation(rope: Rope): Rotation {
    const kind = this.config.ropes.indexOf(rope);
    const scaled = (x: Tensor) => (rope.attention === 1 ? x : x.mul(rope.attention));
    return [
      this.#once(`cos ${kind}`, () => scaled(cos(this.#angles(rope)))),
      this.#once(`sin ${kind}`, () => scaled(sin(this.#angles(rope)))),
    ];
  }

  /** @throws OptError UNSUPPORTED for dynamic scaling of cached positions that are too many */
  #angles(rope: Rope): Tensor {
    const longest = this.#cache?.capacity ?? this.#places;
    const isFixed = rope.kind !== "dynamic" || this.#cache === undefined || longest <= rope.positions;
    const rule = () =>
      `dynamic rotary scaling turns positions anew beyond ${rope.positions}, got a cache of ${longest}.`;
    check(isFixed, "UNSUPPORTED", "forward", rule, "Make a smaller cache, or pass whole sequences without one.");
    const { device, shape } = this.positions;
    const frequencies = tensor(inverseFrequencies(rope, this.config.headDim, longest), { device });
    return this.positions.to("f32").reshape([shape[0]!, 1, shape[1]!, 1]).mul(frequencies);
  }

  /** Queries [rows, heads, places, headDim], keys and values of fewer heads; result [rows, places, heads * headDim]. */
  attend(layer: number, q: Tensor, k: Tensor, v: Tensor): Tensor {
    const [rows, heads, places, headDim] = q.shape as [number, number, number, number];
    const { scale, kvHeads } = this.config;
    const window = this.config.windows[layer]!;
    const slots = this.#cache?.layers[layer];
    if (slots) {
      const isSlot = () => this.#slot(slots.keys.shape[2]!);
      writeSlots(slots.keys, k, this.#at, isSlot);
      writeSlots(slots.values, v, this.#at, isSlot);
    }
    const [keys, values] = this.#at === 0 || !slots ? [k, v].map(aligned) : [slots.keys, slots.values];
    const group = heads / kvHeads;
    let result: Tensor;
    if (this.#isCausal(window)) {
      const [own, ownValues] = [keys!, values!].map((x) => (group === 1 ? x : repeatInterleave(x, group, 1)));
      result = scaledDotProductAttention(q, own!, ownValues!, { isCausal: true, scale });
    } else {
      const attnMask = this.#mask(keys!.shape[2]!, window);
      const grouped = q.reshape([rows, kvHeads, group * places, headDim]);
      result = scaledDotProductAttention(grouped, keys!, values!, { attnMask, scale });
    }
    return result
      .reshape([rows, heads, places, headDim])
      .transpose(1, 2)
      .reshape([rows, places, heads * headDim]);
  }

  /** Each query sees all positions of this pass up to its own. */
  #isCausal(window: number | null): boolean {
    return this.#at === 0 && (window === null || this.#places <= window);
  }

  #slots(count: number): Tensor {
    return arange(count, { device: this.positions.device });
  }

  /** The slot of each row's only token, bool [rows, 1, count, 1]. */
  #slot(count: number): Tensor {
    return this.#once("slot", () => this.#slots(count).unsqueeze(1).eq(this.positions.unsqueeze(-1).unsqueeze(-1)));
  }

  /** Which slots a query sees, bool [rows or 1, 1, group * places, count]. */
  #mask(count: number, window: number | null): Tensor {
    return this.#once(`mask ${window}`, () => {
      const group = this.config.heads / this.config.kvHeads;
      const [slots, own] = [this.#slots(count), this.positions.unsqueeze(-1)];
      const past = slots.le(own);
      const seen = window === null ? past : logicalAnd(past, slots.gt(own.sub(window)));
      const [rows, places] = this.positions.shape as [number, number];
      const repeats = seen.reshape([rows, 1, 1, places, count]).expand([rows, 1, group, places, count]);
      return repeats.reshape([rows, 1, group * places, count]);
    });
  }
}

/** With zeros behind, which no query sees. */
function aligned(x: Tensor): Tensor {
  const places = x.shape[2]!;
  const more = alignedKeys(places) - places;
  return more === 0 ? x : pad(x, [0, 0, 0, more]);
}
