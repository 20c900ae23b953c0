/** The tables of `what-combines.md`: each cell is a plain configuration, and the reasons for which it throws. */
import { REASONS, reasonsOf } from "./combines";
import { type Configuration, FORMATS, MODELS, type Phase, SCHEDULES } from "./configuration";
import type { OptimizerOptions } from "./draw";

const PHASE: Phase = { way: "eager", device: "js", over: "alone", data: 1, model: 1, accumulate: 1 };
const RANKS: Readonly<Record<string, Partial<Phase>>> = {
  "one process": {},
  "`DataParallel`": { over: "DataParallel", data: 2 },
  "`ShardedOptimizer`": { over: "ShardedOptimizer", data: 2 },
  "`FullyShardedDataParallel`": { over: "FullyShardedDataParallel", data: 2 },
  "the same with `shardOver`": { over: "FullyShardedDataParallel", data: 4, shardOver: 2 },
  "divided layers": { over: "DataParallel", data: 1, model: 2 },
  "both of these": { over: "FullyShardedDataParallel", data: 2, model: 2 },
};

type Change = Partial<Omit<Configuration, "phases">> & { readonly phase?: Partial<Phase> };

const FEATURES: Readonly<Record<string, Change>> = {
  "compiled steps": { phase: { way: "compiled" } },
  "`fit`": { phase: { way: "fit" } },
  "several batches a step": { phase: { accumulate: 2 } },
  "groups with other options": { groups: true },
  "frozen parts": { frozen: true },
  "`lora` over a frozen base": { adapters: true },
  "a replaced head": { replaced: true },
  "tied weights": { model: "gpt" },
  "`Dropout`": { dropout: true },
  "`recompute`": { recompute: true },
  "`clipGradNorm`": { clipNorm: 0.5 },
  "`clipGradValue`": { clipValue: 0.01 },
  "`clip: { norm }`": { options: { lr: 0.01, clip: { norm: 0.25 } } },
  "`regularizer`": { penalty: 0.01 },
  "`cautious`": { options: { lr: 0.01, cautious: true } },
  '`decay: "cautious"`': { options: { lr: 0.01, weightDecay: 0.1, decay: "cautious" } },
  "`mars`": { options: { lr: 0.01, mars: { gamma: 0.025 } } },
  "`hyperball`": { options: { lr: 0.01, hyperball: true } },
  "`centralize`": { options: { lr: 0.01, centralize: true } },
  "`combine`": { wrapper: "combine" },
  "`Lookahead`": { wrapper: "Lookahead" },
  "`scheduleFree`": { wrapper: "scheduleFree" },
  "`SAM`": { wrapper: "SAM" },
  "`ExponentialMovingAverage`": { ema: true },
  "`GradScaler`": { overflows: [3] },
  schedules: { schedule: SCHEDULES[0] },
  "bf16 parameters": { dtype: "bf16" },
  "`stochasticRounding`": { dtype: "bf16", options: { lr: 0.01, stochasticRounding: true } },
  '`stateDType: "bf16"`': { dtype: "f32", options: { lr: 0.01, stateDType: "bf16" } },
  "`autocast`": { dtype: "f32", autocast: "bf16" },
};

const LAYERS: Readonly<Record<(typeof MODELS)[number], string>> = {
  mlp: "`Linear` in a `ModuleList`",
  cnn: "`Conv2d`, `BatchNorm2d`",
  gpt: "attention, tied `Embedding`",
  embedding: "`Embedding` with padding",
  lstm: "`LSTM`",
  scale: "parameters without axes, and unused ones",
};

/** Divided layers are those of these models. */
const divides = (model: Configuration["model"]) => model === "mlp" || model === "gpt";

function plain({ phase, ...change }: Change, ranks: Partial<Phase>): Configuration {
  const whole = { seed: 1, model: "mlp", dtype: "f64", width: 8, optimizer: "AdamW", options: { lr: 0.01 } } as const;
  return { ...whole, stepsPerEpoch: 2, ...change, phases: [{ ...PHASE, ...ranks, ...phase }] };
}

type Row = readonly [name: string, cells: readonly (Configuration | null)[]];

function rows(changes: Readonly<Record<string, Change>>): Row[] {
  return Object.entries(changes).map(([name, change]) => [
    name,
    Object.values(RANKS).map((ranks) =>
      (ranks.model ?? 1) > 1 && !divides(change.model ?? "mlp") ? null : plain(change, ranks),
    ),
  ]);
}

function tables(optimizers: OptimizerOptions): Readonly<Record<string, Row[]>> {
  const byOptimizer = Object.keys(optimizers).map((optimizer) => [`\`${optimizer}\``, { optimizer }] as const);
  const models = MODELS.map((model) => [LAYERS[model], { model }] as const);
  const sparse = ["`Embedding` with `sparse: true`", { model: "embedding", sparse: true }] as const;
  return {
    "an optimizer": rows(Object.fromEntries(byOptimizer)),
    "a model": rows(Object.fromEntries([...models, sparse])),
    "a step": rows(FEATURES),
  };
}

/** Every cell of the page. */
export const cellsOf = (optimizers: OptimizerOptions): Configuration[] =>
  Object.values(tables(optimizers)).flatMap((all) => all.flatMap(([, cells]) => cells.filter((cell) => cell !== null)));

/** The page's text behind its introduction. */
export function pageOf(optimizers: OptimizerOptions): string {
  const cellText = (cell: Configuration | null) => {
    if (cell === null) return "";
    const reasons = reasonsOf(cell).map((reason) => `no (${REASONS.indexOf(reason) + 1})`);
    return reasons.length > 0 ? reasons.join(", ") : "yes";
  };
  const columns = Object.keys(RANKS);
  const parts = Object.entries(tables(optimizers)).map(([name, list]) =>
    [
      `| ${name} | ${columns.join(" | ")} |`,
      `|---|${columns.map(() => "---|").join("")}`,
      ...list.map(([row, cells]) => `| ${row} | ${cells.map(cellText).join(" | ")} |`),
    ].join("\n"),
  );
  const reasons = REASONS.map(({ code, says }, i) => `${i + 1}. \`${code}\`: ${says}`).join("\n");
  const formats = FORMATS.map((format) => (format === "checkpoint" ? "a checkpoint" : `\`${format}\``)).join(", ");
  return [
    ...parts,
    "## Go on elsewhere",
    `Any of these runs stops after any step, also inside an epoch, and goes on in any other column, way, device and number of ranks. It goes through ${formats}. Averages of weights stay in checkpoints.`,
    "Saves of `fit` may leave out a frozen base: `checkpoints(folder, { trainable: true })`.",
    "A rank may also be killed: `fit` goes on from its last save, on the ranks that you start then. The fuzzer kills real processes, and finds the bits of the run that nobody killed.",
    "A rank whose callback throws ends `fit` on all ranks.",
    "## What throws",
    reasons,
  ].join("\n\n");
}
