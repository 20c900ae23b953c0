/** Random schedules as plain data, and how their learning rates move. */
import { spoil } from "@opt/testkit";
import fc from "fast-check";
import type { LRScheduler, ScheduledOptimizer } from "../../src/schedules/index";
import { make } from "./make";

const STEPS = 1000;

/** A schedule in words that both sides understand: options in our names, composites with their parts. */
export interface Recipe {
  name: string;
  options: Record<string, unknown>;
  parts?: Recipe[];
}

/** One run: groups with these lrs, these schedules stepped in turn, lr and beta1 noted after each step. */
export interface Run {
  lrs: number[];
  recipes: Recipe[];
  steps: number;
  metrics?: number[];
  /** The schedules move this option, which begins at `lrs`, instead of the lr. */
  option?: string;
}

export type Trace = [number, number][][];

/** The schedule of a recipe, and the schedules of its parts. */
export function made(
  optimizer: ScheduledOptimizer,
  { name, options, parts = [] }: Recipe,
  option?: string,
): LRScheduler {
  const schedulers = parts.map((part) => made(optimizer, part, option));
  if (name === "ChainedScheduler") return make(schedulers, name);
  const { rate: given, ...others } = options;
  const all: Record<string, unknown> = schedulers.length > 0 ? { ...others, schedulers } : others;
  if (option !== undefined && schedulers.length === 0) all.option = option;
  if (given !== undefined) {
    const rate = given as number;
    all.lrLambda = (e: number) => (name === "LambdaLR" ? 1 / (1 + rate * e) : 1 - rate / (e + 2));
  }
  const own = Object.fromEntries(Object.entries(all).map(([key, x]) => [key, Array.isArray(x) ? [...x] : x]));
  const schedule = make(optimizer, name, own);
  spoil(own); // which no schedule may read again
  return schedule;
}

const UNMOVED = 7;

function start({ lrs, recipes, option }: Run): { optimizer: ScheduledOptimizer; made: LRScheduler[] } {
  const betas = [0.9, 0.999] as const;
  const groups = lrs.map((lr) => (option === undefined ? { lr, betas } : { lr: UNMOVED, [option]: lr, betas }));
  const optimizer = { groups };
  return { optimizer, made: recipes.map((recipe) => made(optimizer, recipe, option)) };
}

/** Our trace; at `resumeAt` everything is saved as JSON and loaded into a new optimizer and new schedules. */
export function ourTrace(run: Run, resumeAt = -1): Trace {
  let { optimizer, made } = start(run);
  const moved = (group: object) => (group as Record<string, number>)[run.option ?? "lr"]!;
  const note = () => optimizer.groups.map((group): [number, number] => [moved(group), group.betas?.[0] as number]);
  const notes = [note()];
  for (let step = 0; step < run.steps; step++) {
    if (step === resumeAt) {
      const saved = JSON.parse(JSON.stringify(made.map((schedule) => schedule.stateDict()))) as unknown[];
      ({ optimizer, made } = start(run));
      made.forEach((schedule, index) => {
        schedule.loadStateDict(saved[index]);
      });
    }
    for (const schedule of made) schedule.step(run.metrics?.[step]);
    notes.push(note());
  }
  return notes;
}

const real = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const whole = (min: number, max: number) => fc.integer({ min, max });
const factor = real(0.01, 1);
const of = (name: string, options: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Recipe> =>
  fc.record({ name: fc.constant(name), options: fc.record(options) });

const simple = {
  LambdaLR: of("LambdaLR", { rate: real(0, 1) }),
  MultiplicativeLR: of("MultiplicativeLR", { rate: real(0, 1) }),
  StepLR: of("StepLR", { stepSize: whole(1, 200), gamma: factor }),
  MultiStepLR: of("MultiStepLR", { milestones: fc.array(whole(0, STEPS), { maxLength: 8 }), gamma: factor }),
  ConstantLR: of("ConstantLR", { factor, totalIters: whole(0, 300) }),
  LinearLR: of("LinearLR", { startFactor: factor, endFactor: real(0, 1), totalIters: whole(0, STEPS) }),
  ExponentialLR: of("ExponentialLR", { gamma: real(0.9, 1.002) }),
  PolynomialLR: of("PolynomialLR", { totalIters: whole(0, STEPS), power: fc.oneof(fc.constant(0), real(0.1, 4)) }),
  CosineAnnealingLR: of("CosineAnnealingLR", { tMax: whole(1, STEPS), etaMin: real(0, 0.1) }),
  CosineAnnealingWarmRestarts: of("CosineAnnealingWarmRestarts", {
    t0: whole(1, 50),
    tMult: whole(1, 3),
    etaMin: real(0, 0.1),
  }),
  CyclicLR: of("CyclicLR", {
    baseLr: real(0, 0.1),
    maxLr: real(0.1, 1),
    stepSizeUp: whole(1, 80),
    stepSizeDown: whole(0, 80),
    mode: fc.constantFrom("triangular", "triangular2", "exp_range"),
    gamma: real(0.9, 1),
    cycleMomentum: fc.boolean(),
  }),
  OneCycleLR: of("OneCycleLR", {
    maxLr: real(0.01, 1),
    totalSteps: whole(STEPS, 2 * STEPS),
    pctStart: real(0.01, 0.99),
    annealStrategy: fc.constantFrom("cos", "linear"),
    cycleMomentum: fc.boolean(),
    divFactor: real(2, 50),
    threePhase: fc.boolean(),
  }),
  SWALR: of("SWALR", {
    swaLr: real(0.001, 1),
    annealEpochs: fc.oneof(whole(0, 3), whole(0, 300)),
    annealStrategy: fc.constantFrom("cos", "linear"),
  }),
};
const anySimple = fc.oneof(...Object.values(simple));
const chained = fc
  .array(anySimple, { minLength: 1, maxLength: 3 })
  .map((parts): Recipe => ({ name: "ChainedScheduler", options: {}, parts }));
const sequential = fc
  .tuple(
    fc.oneof({ weight: 4, arbitrary: anySimple }, { weight: 1, arbitrary: chained }),
    fc.array(anySimple, { minLength: 1, maxLength: 2 }),
    fc.tuple(whole(1, 300), whole(1, 300)),
  )
  .map(([first, rest, [one, two]]): Recipe => {
    const milestones = [one, one + two].slice(0, rest.length);
    return { name: "SequentialLR", options: { milestones }, parts: [first, ...rest] };
  });

/** PyTorch's OneCycleLR and SWALR keep their bounds in the groups, where another schedule that keeps them there changes them; ours do not. */
const keepsBounds = ({ name, options, parts = [] }: Recipe): number => {
  const own = name === "OneCycleLR" || name === "SWALR" || options.cycleMomentum === true ? 1 : 0;
  return parts.reduce((sum, part) => sum + keepsBounds(part), own);
};
const alone = (recipes: Recipe[]) => recipes.reduce((sum, recipe) => sum + keepsBounds(recipe), 0) <= 1;

const several = fc.array(anySimple, { minLength: 2, maxLength: 3 });
const runOf = (recipes: fc.Arbitrary<Recipe[]>): fc.Arbitrary<Run> =>
  fc.record({ lrs: fc.array(real(0.001, 1), { minLength: 1, maxLength: 3 }), recipes, steps: fc.constant(STEPS) });
const plateau: fc.Arbitrary<Run> = fc.record({
  lrs: fc.array(real(0.001, 1), { minLength: 1, maxLength: 2 }),
  recipes: fc.tuple(
    of("ReduceLROnPlateau", {
      mode: fc.constantFrom("min", "max"),
      factor: real(0.1, 0.9),
      patience: whole(0, 5),
      threshold: real(0, 0.1),
      thresholdMode: fc.constantFrom("rel", "abs"),
      cooldown: whole(0, 4),
      minLr: real(0, 0.01),
      eps: fc.constantFrom(1e-8, 1e-4),
    }),
  ),
  steps: fc.constant(100),
  metrics: fc.array(real(-1, 1), { minLength: 100, maxLength: 100 }),
});

/** Runs of each kind of schedule, by name. */
export const families: [string, fc.Arbitrary<Run>][] = [
  ...Object.entries(simple).map(([name, recipe]): [string, fc.Arbitrary<Run>] => [name, runOf(fc.tuple(recipe))]),
  ["ReduceLROnPlateau", plateau],
  ["ChainedScheduler", runOf(fc.tuple(chained).filter(alone))],
  ["SequentialLR", runOf(fc.tuple(sequential).filter(alone))],
  ["several schedules on one optimizer", runOf(several.filter(alone))],
];
