/** What does not combine: each pair throws an OptError before the first step. `what-combines.md` is written from it. */
import { type Configuration, callsClosure, isFit, type Phase } from "./configuration";

export interface Reason {
  readonly code: string;
  /** For readers of the page. */
  readonly says: string;
  applies(one: Configuration, phase: Phase): boolean;
}

/** Their state is not one number for each element. */
const OWN_SHAPES: readonly string[] = [
  "Adafactor",
  "APOLLO",
  "DAdaptAdamW",
  "GaLore",
  "Kron",
  "Prodigy",
  "Shampoo",
  "SOAP",
];

export const REASONS: readonly Reason[] = [
  {
    code: "UNSUPPORTED",
    says: "Row-sparse gradients are not exchanged. Make the layer with `sparse: false`.",
    applies: (one, { over, data }) => isSparse(one) && over !== "alone" && data > 1,
  },
  {
    code: "UNSUPPORTED",
    says: "A compiled function can't leave row-sparse gradients to the next one. Step inside.",
    applies: (one, { way, over, accumulate }) =>
      isSparse(one) && way === "compiled" && (over !== "alone" || accumulate > 1 || callsClosure(one)),
  },
  {
    code: "UNSUPPORTED",
    says: "Unscaled gradients of f16 lose what the factor saved. Let the optimizer clip: `clip: { norm: 1 }`.",
    applies: ({ overflows, dtype, clipNorm, clipValue }) =>
      overflows !== undefined && dtype === "f16" && (clipNorm ?? clipValue) !== undefined,
  },
  {
    code: "UNSUPPORTED",
    says: "The variance of rounded averages may be negative. Leave out `stateDType`, or `centered`.",
    applies: ({ optimizer, options: { centered, stateDType } }) =>
      optimizer === "RMSprop" && centered === true && stateDType === "q8",
  },
  {
    code: "UNSUPPORTED",
    says: "State of Adafactor, APOLLO, DAdaptAdamW, GaLore, Kron, Prodigy, Shampoo, SOAP and Muon with `neuronBeta` has shapes of its own. Leave `stateDType` out.",
    applies: ({ optimizer, options: { stateDType, neuronBeta } }) =>
      (OWN_SHAPES.includes(optimizer) || typeof neuronBeta === "number") &&
      stateDType !== undefined &&
      stateDType !== "f32",
  },
  {
    code: "BAD_ARGUMENT",
    says: "`SAM` calls its closure twice, and `ShardedOptimizer` has none. Take `FullyShardedDataParallel`.",
    applies: (one, { over }) => isSam(one) && over === "ShardedOptimizer",
  },
  {
    code: "UNSUPPORTED",
    says: "`Lookahead`, `SAM` and `scheduleFree` write parameters of f32 and f64. Use `autocast`.",
    applies: ({ wrapper, dtype }) => (wrapper ?? "combine") !== "combine" && (dtype === "bf16" || dtype === "f16"),
  },
  {
    code: "BAD_ARGUMENT",
    says: "`Lookahead` and `scheduleFree` average weights, and `ScheduleFreeAdamW` does, too. Wrap `AdamW`.",
    applies: ({ wrapper, optimizer }) => averages(wrapper) && optimizer === "ScheduleFreeAdamW",
  },
  {
    code: "UNSUPPORTED",
    says: "`SAM` calls its closure twice, and a scaler has none. Train in bf16.",
    applies: (one) => isSam(one) && one.overflows !== undefined,
  },
  {
    code: "BAD_ARGUMENT",
    says: "`SAM` calls its closure twice, and `fit` has none. Write the loop: `await optimizer.step(closure)`.",
    applies: (one, phase) => isSam(one) && isFit(phase),
  },
  {
    code: "UNSUPPORTED",
    says: "`SAM` moves weights by dense gradients. Make the layer with `sparse: false`.",
    applies: (one) => isSam(one) && isSparse(one),
  },
  {
    code: "UNSUPPORTED",
    says: "`webgpu` has no float64.",
    applies: ({ dtype }, { device }) => device === "webgpu" && dtype === "f64",
  },
  {
    code: "UNSUPPORTED",
    says: "GaLore, Shampoo and SOAP decompose matrices on the host, which can't read `webgpu` within a step. Take Muon or Kron.",
    applies: ({ optimizer }, { device }) => device === "webgpu" && ["GaLore", "Shampoo", "SOAP"].includes(optimizer),
  },
  {
    code: "NOT_SYNC",
    says: "`webgpu` can't be read without waiting. What ranks divide computes on `js`, `wasm` or `cpu`.",
    applies: ({ optimizer }, { device, over, data, model }) =>
      device === "webgpu" &&
      (over === "FullyShardedDataParallel" ||
        model > 1 ||
        (over === "ShardedOptimizer" && data > 1 && ["DAdaptAdamW", "LBFGS", "Prodigy"].includes(optimizer))), // whose ranks share numbers inside of a step
  },
];

/** Wrappers that keep averages of weights, or other weights. */
const averages = (wrapper: Configuration["wrapper"]): boolean => wrapper === "Lookahead" || wrapper === "scheduleFree";

const isSam = ({ wrapper }: Configuration) => wrapper === "SAM" || wrapper === "ASAM";
const isSparse = ({ sparse, frozen, adapters }: Configuration) => sparse === true && !frozen && !adapters;

/** The reasons for which a configuration throws. */
export const reasonsOf = (one: Configuration): readonly Reason[] =>
  REASONS.filter((reason) => one.phases.some((phase) => reason.applies(one, phase)));
