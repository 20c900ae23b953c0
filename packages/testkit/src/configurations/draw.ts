/** Draws a configuration from a seed: what the docs say combines, and now and then what they say does not. */
import { Random } from "../numbers/random";
import { reasonsOf } from "./combines";
import {
  type Configuration,
  callsClosure,
  FORMATS,
  isFit,
  MODELS,
  type Phase,
  ranksOf,
  SCHEDULES,
  samplesOf,
  stepsOf,
  WRAPPERS,
} from "./configuration";

/** Options by the names of optimizers, as their packages list them. */
export type OptimizerOptions = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;

export interface Drawn {
  readonly optimizers: OptimizerOptions;
  readonly devices: readonly string[];
}

/** Ranks that have samples, and those that divide layers, of four. */
const GRIDS = [
  [2, 2],
  [1, 4],
  [1, 2],
] as const;
/** Divisors of a step's samples: batches of a rank. */
const ACCUMULATE = { 1: [1, 1, 2, 3], 2: [1, 1, 2, 3], 3: [1, 1, 2], 4: [1, 1, 3] } as const;

type Model = Configuration["model"];

const DTYPES = ["f64", "f64", "f64", "f32", "f32", "bf16", "f16"] as const;

/** One vector of all parameters, in 32 or 64 bits. */
const isSearch = (optimizer: string) => optimizer === "LBFGS";

const divides = (model: Model) => model === "mlp" || model === "gpt";

function phaseOf(
  random: Random,
  devices: readonly string[],
  { model, dtype, optimizer, wrapper }: Pick<Configuration, "model" | "dtype" | "optimizer" | "wrapper">,
  isAlone: boolean,
): Phase {
  const device = random.pick(devices);
  const ways = ["eager", "compiled", "compiled", "fit", "fit"] as const;
  const way = random.pick(callsClosure({ optimizer, wrapper }) ? ways.slice(0, 3) : ways);
  const isDivided = !isAlone && divides(model) && dtype === "f64" && random.below(2) === 0;
  const over = random.pick(
    isAlone
      ? (["alone"] as const)
      : isDivided
        ? (["DataParallel", "FullyShardedDataParallel"] as const)
        : ([
            "alone",
            "DataParallel",
            "ShardedOptimizer",
            "ShardedOptimizer",
            "FullyShardedDataParallel",
            "FullyShardedDataParallel",
          ] as const),
  );
  const [data, parts] = isDivided
    ? random.pick(GRIDS)
    : [over === "alone" ? (1 as const) : random.pick([2, 3, 4] as const), 1];
  const isCut = over === "FullyShardedDataParallel";
  const groups = [1, 2].filter((size) => size < data && data % size === 0);
  return {
    way,
    device,
    over,
    data,
    model: parts,
    ...(isCut && groups.length > 0 && random.below(2) === 0 && { shardOver: random.pick(groups.slice(-1)) }),
    ...(isCut && divides(model) && random.below(2) === 0 && { units: true }),
    accumulate: random.pick(ACCUMULATE[data]),
  };
}

/** A worker has no ranks. */
function placeOf(random: Random, phase: Phase): Phase {
  const isAlone = phase.way === "fit" && phase.over === "alone" && phase.device !== "webgpu";
  return isAlone && random.below(2) === 0 ? { ...phase, way: "worker" } : phase;
}

function optionsOf(random: Random, optimizer: string, dtype: Configuration["dtype"], runs: OptimizerOptions) {
  const options: Record<string, unknown> = { lr: 0.01, ...random.pick(runs[optimizer]!) };
  if (isSearch(optimizer)) return options;
  if (random.below(6) === 0) options.maximize = true;
  if (random.below(6) === 0) options.clip = random.pick([{ norm: 0.25 }, { value: 0.01 }, { norm: 0.25, value: 0.02 }]);
  if (dtype === "f32") {
    const kept = random.below(8);
    if (kept < 3) options.stateDType = (["bf16", "q8", "bf16x"] as const)[kept];
    // Its first step is lr / sqrt(1 - alpha): ten times that of others, whose bound is for packed state.
    if (options.stateDType === "q8" && optimizer === "RMSprop") options.lr = 0.001;
  }
  if ((dtype === "bf16" || dtype === "f16") && random.below(2) === 0) options.stochasticRounding = true;
  return { ...options, ...modificationsOf(random, optimizer, runs[optimizer]!) };
}

/** Averages of parameters go with nothing that changes the update. */
const isAverage = (optimizer: string) => optimizer === "ASGD" || optimizer === "ScheduleFreeAdamW";

/** Their step sizes do not go by `lr`. */
const findsRate = (optimizer: string) => optimizer === "DAdaptAdamW" || optimizer === "Prodigy";

/** Modifications that go with an optimizer, one in four times. */
function modificationsOf(random: Random, optimizer: string, runs: readonly object[]) {
  if (random.below(4) > 0) return {};
  const now = () => random.below(3) === 0;
  const has = (option: string) => runs.some((run) => option in run);
  const anywhere = random.pick(["l2", "decoupled", "cautious", "independent"] as const);
  const decay = findsRate(optimizer) ? "l2" : anywhere;
  return {
    ...(now() && { centralize: true }),
    ...(has("betas") && now() && { mars: { gamma: 0.0625 } }),
    ...(!isAverage(optimizer) && now() && { cautious: true }),
    ...(!isAverage(optimizer) && now() && !findsRate(optimizer) && { hyperball: true }),
    ...(!isAverage(optimizer) && has("weightDecay") && now() && { weightDecay: 0.0625, decay }),
  };
}

/** What an optimizer is inside of, one in four times. */
function wrapperOf(random: Random, optimizer: string): Pick<Configuration, "wrapper"> {
  return !isSearch(optimizer) && random.below(4) === 0 ? { wrapper: random.pick(WRAPPERS) } : {};
}

/** What a configuration has besides, each now and then. */
function featuresOf(
  random: Random,
  { model, dtype, optimizer, wrapper }: Pick<Configuration, "model" | "dtype" | "optimizer" | "wrapper">,
): Partial<Configuration> {
  const now = (one: number) => random.below(one) === 0;
  const isByRule = !isSearch(optimizer);
  return {
    ...(isByRule && wrapper !== "combine" && now(3) && { groups: true }),
    ...(now(4) && { frozen: true }),
    ...(now(5) && { replaced: true }),
    ...(now(3) && { dropout: true }),
    ...(now(3) && { recompute: true }),
    ...(model === "embedding" && !now(3) && { sparse: true }),
    ...(dtype === "f32" && now(3) && { autocast: random.pick(["bf16", "f16"] as const) }),
    ...(now(3) && { clipNorm: random.pick([0.05, 0.5]) }),
    ...(now(8) && { clipValue: 0.01 }),
    ...(isByRule && now(5) && { penalty: 0.01 }),
    ...(!now(3) && { ema: true }),
    ...(!now(3) && { schedule: random.pick(SCHEDULES) }),
  };
}

/** What only `fit` takes: losses of sums, and a last step of fewer samples. */
function restOf(random: Random, { model, dtype, phases }: Configuration): Partial<Configuration> {
  if (!phases.every(isFit)) return {};
  const [{ over, data }] = phases;
  if (phases.length === 1 && dtype === "f64" && over !== "alone" && data > 1 && random.below(2) === 0)
    return { rest: 1 + random.below(11), uneven: true };
  const fits = [3, 4, 6, 8].filter((rest) => phases.every(({ data }) => rest % data === 0));
  return {
    ...(random.below(3) > 0 && fits.length > 0 && { rest: random.pick(fits) }),
    ...(model === "gpt" && random.below(2) === 0 && { counted: true }),
  };
}

/** Adapters are f32 beside layers of 16 bits, and layers that ranks divide have none. */
function adaptersOf(random: Random, one: Configuration): Partial<Configuration> {
  const { model, dtype, optimizer, wrapper, phases } = one;
  const fits = (dtype === "f64" || dtype === "f32") && optimizer !== "SparseAdam" && wrapper !== "combine";
  const isWhole = model !== "gpt" || phases.every((phase) => phase.model === 1);
  return fits && isWhole && random.below(6) === 0 ? { adapters: true } : {};
}

const resumesFit = ({ phases, through }: Configuration) =>
  phases.length > 1 && phases.every(isFit) && through === "checkpoint";

/** Saves of `fit` that need the base. */
function trainableOf(random: Random, one: Configuration): Partial<Configuration> {
  return resumesFit(one) && random.below(2) === 0 ? { trainable: true } : {};
}

/** A real process is killed where `fit` goes on from saves of `fit`. */
function killedOf(random: Random, one: Configuration): Partial<Configuration> {
  return resumesFit(one) && random.below(4) === 0 ? { killed: random.below(ranksOf(one.phases[0])) } : {};
}

/** A run that ends on all ranks with what one of them throws. */
function throwsOf(random: Random, { phases }: Configuration): Partial<Configuration> {
  const [{ way, data }] = phases;
  return phases.length === 1 && way === "fit" && data > 1 && random.below(6) === 0
    ? { throws: random.below(data) }
    : {};
}

/** Parameters by their numbers: checkpoints of parts, and of others, need names. */
function unnamedOf(random: Random, { optimizer, wrapper, phases }: Configuration): Partial<Configuration> {
  const areWhole = phases.every(({ over, model }) => model === 1 && (over === "alone" || over === "DataParallel"));
  return areWhole && optimizer !== "Muon" && wrapper !== "combine" && random.below(2) === 0 ? { unnamed: true } : {};
}

export function draw(seed: number, { optimizers, devices }: Drawn): Configuration {
  const random = new Random(seed);
  for (;;) {
    const drawn = random.pick(MODELS);
    const optimizer = random.pick(Object.keys(optimizers));
    const dtype = random.pick(isSearch(optimizer) ? DTYPES.slice(0, 5) : DTYPES);
    const options = optionsOf(random, optimizer, dtype, optimizers);
    const isPacked = options.stateDType === "q8" || options.stateDType === "bf16x";
    const model = isPacked ? "mlp" : drawn;
    const inside = wrapperOf(random, optimizer);
    const features = featuresOf(random, { model, dtype, optimizer, ...inside });
    // Row-sparse gradients are not exchanged.
    const phase = () =>
      phaseOf(
        random,
        devices,
        { model, dtype, optimizer, ...inside },
        features.sparse === true && random.below(10) > 0,
      );
    const [first, second] = [phase(), phase()];
    // Half of the runs stay on their device, and half stay with `fit`.
    const device = random.pick([first.device, second.device]);
    const way = random.below(2) === 0 && first.way === "fit" ? "fit" : second.way;
    const phases = [placeOf(random, first), placeOf(random, { ...second, device, way })] as const;
    const isBroken = random.below(5) < 3;
    const plain: Configuration = {
      seed,
      model,
      dtype,
      width: isPacked ? 64 : 8,
      optimizer,
      ...inside,
      options,
      ...features,
      stepsPerEpoch: random.pick([1, 2, 2, 3]),
      phases: isBroken ? phases : [phases[0]],
    };
    const unnamed = unnamedOf(random, plain);
    const through = unnamed.unnamed ? "checkpoint" : random.pick([...FORMATS, "checkpoint", "checkpoint"] as const);
    const one: Configuration = {
      ...plain,
      ...restOf(random, plain),
      ...(plain.phases.every(isFit) && random.below(3) === 0 && { validated: true as const }),
      ...unnamed,
      ...(isBroken && { break: 1 + random.below(stepsOf(plain) - 1), through }),
      ...(!callsClosure(plain) && random.below(3) === 0 && { overflows: [random.below(samplesOf(plain))] }),
      ...adaptersOf(random, plain),
    };
    // Of what does not combine, one of twenty is tried.
    if (reasonsOf(one).length === 0)
      return { ...one, ...killedOf(random, one), ...throwsOf(random, one), ...trainableOf(random, one) };
    if (random.below(20) === 0) return one;
  }
}
