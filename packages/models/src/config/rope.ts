/** Rotary positions (Su et al. 2021): the frequencies of a head, with their scalings. */
import { type ConfigJson, Fields } from "./fields";

const KINDS = ["default", "linear", "dynamic", "llama3"] as const;

/** How a kind of layers turns its heads. */
export interface Rope {
  readonly kind: (typeof KINDS)[number];
  readonly theta: number;
  readonly factor: number;
  /** Of llama3: turns within the original context beyond which a frequency is divided, or kept. */
  readonly low: number;
  readonly high: number;
  /** The context that the frequencies were trained for. */
  readonly positions: number;
}

/** Reads `rope_parameters` or the older `rope_scaling`. @throws OptError UNSUPPORTED, BAD_ARGUMENT */
export function readRope(json: unknown, theta: number, positions: number): Rope {
  const fields = new Fields((json ?? {}) as ConfigJson, "config.json: rope_parameters");
  const kind = (fields.any("rope_type", "type") ?? "default") as Rope["kind"];
  fields.oneOf("rope_type", KINDS, kind);
  fields.fixed("partial_rotary_factor", 1);
  const isLlama3 = kind === "llama3";
  const rope = {
    kind,
    theta: fields.number("rope_theta", theta),
    factor: fields.number("factor", kind === "default" ? 1 : undefined),
    low: fields.number("low_freq_factor", isLlama3 ? undefined : 1),
    high: fields.number("high_freq_factor", isLlama3 ? undefined : 1),
    positions: fields.number("original_max_position_embeddings", positions),
  };
  fields.finish();
  return rope;
}

/** 1 / theta^(2 i / width), scaled, in float32 as transformers computes them. `length`: of a sequence, for dynamic scaling. */
export function inverseFrequencies(rope: Rope, width: number, length: number): Float32Array {
  const { kind, theta, factor, low, high, positions } = rope;
  const stretch = (factor * Math.max(length, positions)) / positions - (factor - 1);
  const base = kind === "dynamic" ? theta * stretch ** (width / (width - 2)) : theta;
  return Float32Array.from({ length: width / 2 }, (_, i) => {
    const frequency = Math.fround(1 / Math.fround(base ** Math.fround((2 * i) / width)));
    if (kind === "linear") return frequency / factor;
    if (kind !== "llama3") return frequency;
    const turns = (positions * frequency) / (2 * Math.PI);
    const share = Math.min(Math.max((turns - low) / (high - low), 0), 1);
    return ((1 - share) * frequency) / factor + share * frequency;
  });
}
