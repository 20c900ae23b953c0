/** Rotary positions (Su et al. 2021): the frequencies of a head, with their scalings. */
import { type ConfigJson, Fields } from "./fields";

const KINDS = ["default", "linear", "dynamic", "llama3", "yarn"] as const;

/** How a kind of layers turns its heads. */
export interface Rope {
  readonly kind: (typeof KINDS)[number];
  readonly theta: number;
  readonly factor: number;
  /** Of llama3 and yarn: turns within the original context beyond which a frequency is divided, or kept. */
  readonly low: number;
  readonly high: number;
  /** Of yarn: whether the dimensions between them are rounded to whole ones. */
  readonly truncate: boolean;
  /** Factor of cosines and sines. */
  readonly attention: number;
  /** The context that the frequencies were trained for. */
  readonly positions: number;
}

/** Reads `rope_parameters` or the older `rope_scaling`. @throws OptError UNSUPPORTED, BAD_ARGUMENT */
export function readRope(json: unknown, theta: number, positions: number): Rope {
  const fields = new Fields((json ?? {}) as ConfigJson, "config.json: rope_parameters");
  const kind = (fields.any("rope_type", "type") ?? "default") as Rope["kind"];
  fields.oneOf("rope_type", KINDS, kind);
  fields.fixed("partial_rotary_factor", 1);
  const [isLlama3, isYarn] = [kind === "llama3", kind === "yarn"];
  const factor = fields.number("factor", kind === "default" ? 1 : undefined);
  const rope = {
    ...{ kind, factor },
    theta: fields.number("rope_theta", theta),
    low: isYarn ? fields.number("beta_slow", 1) : fields.number("low_freq_factor", isLlama3 ? undefined : 1),
    high: isYarn ? fields.number("beta_fast", 32) : fields.number("high_freq_factor", isLlama3 ? undefined : 1),
    truncate: isYarn && fields.boolean("truncate", true),
    attention: isYarn ? attentionOf(fields, factor) : 1,
    positions: fields.number("original_max_position_embeddings", positions),
  };
  fields.finish();
  return rope;
}

/** Longer contexts make softmax softer: yarn sharpens the scores again (Peng et al. 2023, equation 22). */
function attentionOf(fields: Fields, factor: number): number {
  const of = (scale: number) => (factor <= 1 ? 1 : 0.1 * scale * Math.log(factor) + 1);
  const [own, all] = ["mscale", "mscale_all_dim"].map((name) => fields.number(name, 0)) as [number, number];
  return fields.number("attention_factor", own && all ? of(own) / of(all) : of(1));
}

/** 1 / theta^(2 i / width), scaled, in float32 as transformers computes them. `length`: of a sequence, for dynamic scaling. */
export function inverseFrequencies(rope: Rope, width: number, length: number): Float32Array {
  const { kind, theta, factor, low, high, positions } = rope;
  const stretch = (factor * Math.max(length, positions)) / positions - (factor - 1);
  const base = kind === "dynamic" ? theta * stretch ** (width / (width - 2)) : theta;
  const ramp = kind === "yarn" ? rampOf(rope, width) : undefined;
  return Float32Array.from({ length: width / 2 }, (_, i) => {
    const frequency = Math.fround(1 / Math.fround(base ** Math.fround((2 * i) / width)));
    if (kind === "linear") return frequency / factor;
    if (ramp) return (frequency / factor) * ramp(i) + frequency * (1 - ramp(i));
    if (kind !== "llama3") return frequency;
    const turns = (positions * frequency) / (2 * Math.PI);
    const share = Math.min(Math.max((turns - low) / (high - low), 0), 1);
    return ((1 - share) * frequency) / factor + share * frequency;
  });
}

/** How much of a dimension's frequency yarn divides: 0 for those that turn often, 1 for those that turn less than once. */
function rampOf({ theta, low, high, positions, truncate }: Rope, width: number): (i: number) => number {
  const dimension = (turns: number) => (width * Math.log(positions / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const [often, seldom] = [dimension(high), dimension(low)];
  const first = Math.max(truncate ? Math.floor(often) : often, 0);
  const last = Math.min(truncate ? Math.ceil(seldom) : seldom, width - 1);
  return (i) => Math.min(Math.max((i - first) / (last === first ? 0.001 : last - first), 0), 1);
}
