/** A training run as plain JSON: what is trained, how, where, and where it stops and goes on. */

export const MODELS = ["mlp", "cnn", "gpt", "embedding", "lstm", "scale"] as const;
const WAYS = ["eager", "compiled", "fit", "worker"] as const;
const OVER = ["alone", "DataParallel", "ShardedOptimizer", "FullyShardedDataParallel"] as const;
export const FORMATS = ["checkpoint", "safetensors", "pt", "dcp"] as const;
export const WRAPPERS = ["combine", "Lookahead", "scheduleFree", "SAM", "ASAM"] as const;
export const SCHEDULES = ["StepLR", "CosineAnnealingLR", "LinearLR", "OneCycleLR", "ExponentialLR"] as const;

/** A part of a run: between its start, its break and its end. */
export interface Phase {
  readonly way: (typeof WAYS)[number];
  readonly device: string;
  readonly over: (typeof OVER)[number];
  /** Ranks that have samples of their own. */
  readonly data: number;
  /** Ranks that divide layers. */
  readonly model: number;
  /** Batches of each rank and step. */
  readonly accumulate: number;
  /** Neighbours that divide parameters. */
  readonly shardOver?: number;
  /** Blocks are gathered, in place of the model's children. */
  readonly units?: true;
}

export interface Configuration {
  readonly seed: number;
  readonly model: (typeof MODELS)[number];
  /** Of parameters. */
  readonly dtype: "f64" | "f32" | "bf16" | "f16";
  /** Features between layers: 64 where state in 8 bits is to have whole blocks. */
  readonly width: number;
  readonly optimizer: string;
  /** What it is inside of. With "combine" it trains matrices, and AdamW the rest. */
  readonly wrapper?: (typeof WRAPPERS)[number];
  /** Of the optimizer. Plain JSON. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Matrices and vectors have a group each, with other rates and decays. */
  readonly groups?: boolean;
  /** The optimizer gets parameters without names. */
  readonly unnamed?: boolean;
  readonly frozen?: boolean;
  /** Linear layers have low-rank adapters, and all else is frozen. */
  readonly adapters?: true;
  /** The head is another one than the model was made with. */
  readonly replaced?: boolean;
  readonly dropout?: boolean;
  readonly recompute?: boolean;
  readonly sparse?: boolean;
  /** The loss is `{ sum, count }`, of targets that are no padding. */
  readonly counted?: boolean;
  readonly autocast?: "bf16" | "f16";
  /** By `clipGradNorm`, `clipGradValue`. */
  readonly clipNorm?: number;
  readonly clipValue?: number;
  /** Of an l2 regularizer. */
  readonly penalty?: number;
  readonly ema?: boolean;
  /** Samples whose gradients overflow. */
  readonly overflows?: readonly number[];
  readonly schedule?: (typeof SCHEDULES)[number];
  readonly stepsPerEpoch: number;
  /** Samples of an epoch behind its last whole step. */
  readonly rest?: number;
  /** `fit` measures after each epoch: by the average of a schedule-free optimizer, which moves the weights there and back. */
  readonly validated?: true;
  /** Each rank has a contiguous part of the order: of the last step one has fewer samples than others, or none. */
  readonly uneven?: true;
  readonly phases: readonly [Phase] | readonly [Phase, Phase];
  /** Steps before the break. */
  readonly break?: number;
  readonly through?: (typeof FORMATS)[number];
  /** Saves of `fit` leave out what does not train. */
  readonly trainable?: true;
  /** The rank whose process is killed in the step behind the break. The second phase goes on from the last save of `fit`. */
  readonly killed?: number;
  /** The rank whose callback throws after the first step of `fit`: all ranks throw then. */
  readonly throws?: number;
}

/** What it throws. */
export const PLANTED = "a planted error";

/** Samples of a step, of all ranks. */
export const STEP_SAMPLES = 12;
export const EPOCHS = 2;

/** Steps of the whole run. */
export const stepsOf = ({ stepsPerEpoch, rest }: Configuration): number => EPOCHS * (stepsPerEpoch + (rest ? 1 : 0));

export const samplesOf = ({ stepsPerEpoch, rest = 0 }: Configuration): number => stepsPerEpoch * STEP_SAMPLES + rest;

/** By `fit`, perhaps in a worker. */
export const isFit = ({ way }: Phase): boolean => way === "fit" || way === "worker";

/** Its steps call a closure, which computes gradients. */
export const callsClosure = ({ optimizer, wrapper }: Pick<Configuration, "optimizer" | "wrapper">): boolean =>
  optimizer === "LBFGS" || wrapper === "SAM" || wrapper === "ASAM";

/** Ranks that a phase needs. */
export const ranksOf = ({ data, model }: Phase): number => data * model;

const phaseText = ({ way, device, over, data, model, accumulate, shardOver, units }: Phase): string =>
  [
    `${way} on ${device}`,
    over === "alone" && data * model === 1 ? "1 process" : `${over} on ${data} x ${model} ranks`,
    ...(shardOver ? [`parts over ${shardOver}`] : []),
    ...(units ? ["units of blocks"] : []),
    ...(accumulate > 1 ? [`${accumulate} batches a step`] : []),
  ].join(", ");

/** What a person reads. */
export function textOf(one: Configuration): string {
  const { seed: _, phases, optimizer, wrapper, options, model, dtype, width, stepsPerEpoch, through, ...rest } = one;
  const features = Object.entries(rest).map(([name, value]) => (value === true ? name : `${name} ${value}`));
  return [
    `${model} of ${dtype}, width ${width}, ${wrapper ? `${wrapper} of ` : ""}${optimizer} ${JSON.stringify(options)}`,
    `${EPOCHS} x ${stepsPerEpoch} steps${features.length > 0 ? `: ${features.join(", ")}` : ""}`,
    ...phases.map((phase, i) => `${i > 0 ? `then through ${through}: ` : ""}${phaseText(phase)}`),
  ].join("\n");
}
