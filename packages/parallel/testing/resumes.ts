/** Small runs by hand that are broken, saved, changed by a fault, and resumed: what `opt-run --prove-resume` compares, in one process. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AdamW } from "@opt/adam-amsgrad";
import { recordedRun } from "@opt/checkpoint";
import {
  clipGradNorm,
  defaultGenerator,
  ExponentialMovingAverage,
  Generator,
  GradScaler,
  Lookahead,
  manualSeed,
  noGrad,
  StochasticWeightAverage,
  Tensor,
  tensor,
  tidy,
} from "@opt/core";
import { CosineAnnealingLR, ReduceLROnPlateau } from "@opt/core/schedules";
import { BatchNorm1d, Dropout, Linear, type Module, mseLoss, ReLU, Sequential } from "@opt/nn";
import { SGD } from "@opt/sgd";
import { firstDifference } from "../src/prove/compare";
import { type Lines, linesOf } from "../src/prove/lines";

export const OPTIONS = [
  ...[
    "norm",
    "dropout",
    "own dropout",
    "momentum",
    "amsgrad",
    "q8",
    "bf16",
    "lookahead",
    "warmup",
    "plateau",
    "scaler",
    "ema",
    "swa",
  ],
  ...["clip", "accumulate", "tied", "early", "groups", "unrecorded loader", "no record after loading"],
] as const;

export type Option = (typeof OPTIONS)[number];

// biome-ignore lint/suspicious/noExplicitAny: faults change any part of what was saved
export type Saved = Record<string, any>;

export interface Fault {
  readonly has?: readonly Option[];
  /** Of the parts that were saved, and those of the steps before and after. */
  change?(saved: Saved, at: { readonly newer: Saved; readonly older: Saved }): void;
  /** Parts that are not loaded. */
  readonly forgets?: readonly string[];
  /** After loading. */
  after?(run: Run): void;
}

const STEPS = 16;
const BATCH = 4;
const ROWS = 24;

interface Part {
  stateDict(): object;
  // biome-ignore lint/suspicious/noExplicitAny: each part has its own
  loadStateDict(state: any): void;
}

/** Plain members as a part. */
function plain<Members extends object>(members: Members): Members & Part {
  const names = Object.keys(members) as (keyof Members)[];
  return Object.assign(members, {
    stateDict: () => Object.fromEntries(names.map((name) => [name, members[name]])),
    loadStateDict: (state: Members) => {
      for (const name of names) members[name] = state[name];
    },
  });
}

export class Run {
  readonly parts: Record<string, Part>;
  readonly model: Module;
  readonly #hidden = new Generator(9);
  readonly #step: (samples: readonly number[]) => void;

  constructor(private readonly options: readonly Option[]) {
    const has = (option: Option) => options.includes(option);
    manualSeed(3);
    const generator = new Generator(1);
    const [first, middle, last] = [
      new Linear(4, 6, { generator }),
      new Linear(6, 6, { generator }),
      new Linear(6, 6, { generator }),
    ];
    const inner = has("norm") ? [new BatchNorm1d(6)] : [];
    const drop = has("dropout") ? [new Dropout(0.3)] : [];
    const model = new Sequential(first, ...inner, new ReLU(), ...drop, middle, new ReLU(), last);
    if (has("bf16")) model.to("bf16");
    if (has("tied")) last.weight = middle.weight;
    this.model = model;
    const named = model.namedParameters();
    const groups = has("groups")
      ? [
          { params: named.filter(([name]) => name.endsWith("weight")), lr: 0.02 },
          { params: named.filter(([name]) => name.endsWith("bias")), lr: 0.005 },
        ]
      : named;
    const base = has("momentum")
      ? new SGD(groups, { lr: 0.05, momentum: 0.9, dampening: 0.5 })
      : new AdamW(groups, {
          lr: 0.02,
          weightDecay: 0.01,
          amsgrad: has("amsgrad"),
          ...(has("q8") && { stateDType: "q8" as const }),
        });
    const optimizer = has("lookahead") ? new Lookahead(base as AdamW, { k: 3 }) : base;
    const loader = plain({ seed: 5, taken: 0 });
    const position = plain({ epoch: 0, step: 0 });
    const clip = plain({ window: [1, 1, 1] });
    const early = plain({ best: 1e9, wait: 0 });
    const schedule = has("plateau")
      ? new ReduceLROnPlateau(optimizer, { patience: 5, threshold: 0.5 })
      : new CosineAnnealingLR(optimizer, { tMax: 40, ...(has("warmup") && { warmup: 12 }) });
    const scaler = new GradScaler({ initScale: 8, growthInterval: 6 });
    const ema = new ExponentialMovingAverage(named, { decay: 0.8 });
    const swa = new StochasticWeightAverage(named);
    this.parts = {
      ...{ model, optimizer, schedule, loader, position, random: defaultGenerator },
      ...(has("scaler") && { scaler }),
      ...(has("ema") && { ema }),
      ...(has("swa") && { swa }),
      ...(has("clip") && { clip }),
      ...(has("early") && { early_stopping: early }),
      ...(has("accumulate") && {
        gradients: {
          stateDict: () => Object.fromEntries(named.map(([name, param]) => [name, param.grad])),
          loadStateDict: (saved: Record<string, Tensor | null>) => {
            for (const [name, param] of named) param.grad = saved[name]?.clone() ?? null;
          },
        },
      }),
    };
    this.#step = (samples) => {
      const x = tensor(
        samples.map((row) => [Math.sin(row), Math.cos(row), (row % 5) / 5, 1]),
        { dtype: has("bf16") ? "bf16" : "f32" },
      );
      const goal = tensor(
        samples.map((row) => Array.from({ length: 6 }, (_, k) => Math.sin(row * k))),
        { dtype: has("bf16") ? "bf16" : "f32" },
      );
      let y = model.forward(x) as Tensor;
      if (has("own dropout")) y = y.mul(tensor([1 + this.#hidden.nextUint32() / 2 ** 33]));
      const loss = mseLoss(y, goal);
      (has("scaler") ? scaler.scale(loss) : loss).backward();
      position.step++;
      if (has("accumulate") && position.step % 2 === 1) return;
      if (has("clip")) {
        clipGradNorm(model.parameters(), Math.min(...clip.window));
        clip.window = [...clip.window.slice(1), 0.2 + (loss.dataSync()[0]! % 1)];
      }
      if (has("scaler")) {
        scaler.step(optimizer as AdamW);
        scaler.update();
      } else optimizer.step();
      for (const param of model.parameters()) param.grad = null;
      const value = loss.dataSync()[0]!;
      if (schedule instanceof ReduceLROnPlateau) schedule.step(value);
      else schedule.step();
      if (has("ema")) ema.update();
      if (has("swa")) swa.update();
      early.wait = value < early.best ? 0 : early.wait + 1;
      early.best = Math.min(early.best, value);
    };
    this.#loader = loader;
    this.#position = position;
  }

  readonly #loader: { seed: number; taken: number };
  readonly #position: { epoch: number; step: number };

  get step(): number {
    return this.#position.step;
  }

  /** Trains one step, and returns its samples. */
  train(): number[] {
    const place = this.#loader;
    if (place.taken >= ROWS) {
      this.#position.epoch++;
      Object.assign(place, { seed: place.seed + this.#position.epoch, taken: 0 });
    }
    const order = new Generator(place.seed);
    const keys = Array.from({ length: ROWS }, (_, row) => [order.nextUint32(), row] as const).sort(
      (a, b) => a[0] - b[0],
    );
    const samples = keys.slice(place.taken, place.taken + BATCH).map(([, row]) => row);
    place.taken += BATCH;
    tidy(() => this.#step(samples));
    return samples;
  }

  state(): Saved {
    return Object.fromEntries(Object.entries(this.parts).map(([name, part]) => [name, part.stateDict()]));
  }

  /** What a loop by hand records. */
  recorded(samples?: readonly number[]): object {
    const { loader, ...state } = this.state();
    return { ...state, ...(!this.options.includes("unrecorded loader") && { loader }), ...(samples && { samples }) };
  }

  load(saved: Saved, forgets: readonly string[] = []): void {
    for (const [name, part] of Object.entries(this.parts))
      if (!forgets.includes(name) && saved[name]) noGrad(() => part.loadStateDict(saved[name]));
  }
}

/** A copy of state, as a checkpoint has it. */
export function copyOf(value: unknown): Saved {
  if (value instanceof Tensor) return value.clone() as never;
  if (Array.isArray(value)) return value.map(copyOf) as never;
  if (ArrayBuffer.isView(value)) return structuredClone(value) as never;
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyOf(item)]));
  return value as never;
}

/** The first difference of a run that is broken after step `end`, with a fault in its resume; undefined where it is the same. */
export async function differenceOf({ has = [], change, forgets, after }: Fault, end = 9) {
  const folder = mkdtempSync(join(tmpdir(), "opt-resumes-"));
  try {
    const live = async (name: string, run: Run, isResumed = false): Promise<{ lines: Lines; saved: Saved[] }> => {
      process.env.OPT_RUN_LEDGER = join(folder, name);
      const book = await recordedRun("run");
      const saved: Saved[] = [];
      if (isResumed && !has.includes("no record after loading")) await book.record(run.step, run.recorded());
      while (run.step < STEPS) {
        const samples = run.train();
        saved[run.step] = copyOf(run.state());
        await book.record(run.step, run.recorded(samples));
      }
      return { lines: linesOf(`${process.env.OPT_RUN_LEDGER}-0.jsonl`), saved };
    };
    const whole = await live("whole", new Run(has));
    const at = (step: number) => copyOf(whole.saved[step]);
    const saved = at(end);
    change?.(saved, { newer: at(end + 1), older: at(end - 1) });
    const run = new Run(has);
    run.load(saved, forgets);
    after?.(run);
    const { lines } = await live("resumed", run, true);
    return firstDifference(whole.lines, lines);
  } finally {
    delete process.env.OPT_RUN_LEDGER;
    rmSync(folder, { recursive: true });
  }
}
