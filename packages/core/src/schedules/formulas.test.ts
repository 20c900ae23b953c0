// Schedules that PyTorch lacks are their documented formulas, most of them PaddlePaddle's: random options, 0 among them, groups that differ, beyond each period.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ourTrace } from "../../testing/schedules/recipes";

const STEPS = 40;

/** Options that two groups share or have each of their own. */
type Options = Readonly<Record<string, number | boolean | string | readonly number[] | undefined>>;

interface Formula {
  readonly options: fc.Arbitrary<Options>;
  /** The rate of a group at an epoch. */
  readonly lr: (epoch: number, base: number, options: never, group: number) => number;
}

const real = (min: number, max: number) =>
  fc.oneof(
    fc.constantFrom(...[0, 1].filter((edge) => min <= edge && edge <= max)),
    fc.double({ min, max, noNaN: true }),
  );
const whole = (min: number, max: number) => fc.integer({ min, max });
/** A number for all groups, or for each of two. */
const perGroup = (min: number, max: number) => fc.oneof(real(min, max), fc.tuple(real(min, max), real(min, max)));
const of = (given: number | readonly number[], group: number) => (typeof given === "number" ? given : given[group]!);

const FORMULAS: Readonly<Record<string, Formula>> = {
  InverseTimeLR: {
    options: fc.record({ gamma: real(0, 2) }),
    lr: (epoch, base, { gamma }: { gamma: number }) => base / (1 + gamma * epoch),
  },
  NaturalExpLR: {
    options: fc.record({ gamma: real(0, 2) }),
    lr: (epoch, base, { gamma }: { gamma: number }) => base * Math.exp(-gamma * epoch),
  },
  NoamLR: {
    options: fc.record({ dModel: whole(1, 600), warmupSteps: whole(1, 30) }),
    lr: (epoch, base, { dModel, warmupSteps }: { dModel: number; warmupSteps: number }) =>
      (base / Math.sqrt(dModel)) * Math.min(1 / Math.sqrt(epoch), epoch / warmupSteps ** 1.5),
  },
  PiecewiseLR: {
    options: fc.uniqueArray(whole(0, STEPS), { maxLength: 4 }).chain((boundaries) =>
      fc.record({
        boundaries: fc.constant(boundaries.sort((a, b) => a - b)),
        values: fc.array(real(-1, 2), { minLength: boundaries.length + 1, maxLength: boundaries.length + 1 }),
      }),
    ),
    lr: (epoch, _base, { boundaries, values }: { boundaries: number[]; values: number[] }) =>
      values[boundaries.filter((boundary) => boundary <= epoch).length]!,
  },
  PolynomialLR: {
    options: fc.record({ totalIters: whole(1, 15), power: real(0.25, 3), endLr: real(-1, 1), cycle: fc.boolean() }),
    lr: (epoch, base, { totalIters, power, endLr, cycle }: Readonly<Record<string, number>>) => {
      const period = cycle ? totalIters! * Math.max(1, Math.ceil(epoch / totalIters!)) : totalIters!;
      return endLr! + (base - endLr!) * (1 - Math.min(epoch, period) / period) ** power!;
    },
  },
  CosineAnnealingLR: {
    options: whole(2, 30).chain((tMax) =>
      fc.record({ tMax: fc.constant(tMax), etaMin: real(0, 0.1), warmup: whole(1, tMax - 1) }),
    ),
    lr: (epoch, base, { tMax, etaMin, warmup }: Readonly<Record<string, number>>) =>
      epoch < warmup!
        ? (base * epoch) / warmup!
        : etaMin! + (base - etaMin!) * Math.cos((Math.PI * (epoch - warmup!)) / (tMax! - warmup!) / 2) ** 2,
  },
  WarmupStableDecayLR: {
    options: fc.record(
      {
        warmup: whole(0, 15),
        stable: whole(0, 15),
        decay: whole(1, 15),
        shape: fc.constantFrom("linear", "cosine", "sqrt"),
      },
      { requiredKeys: ["warmup", "stable", "decay"] },
    ),
    lr: (epoch, base, { warmup, stable, decay, shape }: { [name: string]: number } & { shape?: string }) => {
      if (epoch < warmup!) return (base * epoch) / warmup!;
      const x = Math.min(1, Math.max(0, (epoch - warmup! - stable!) / decay!));
      if (shape === "cosine") return base * Math.cos((Math.PI * x) / 2) ** 2;
      return base * (1 - (shape === "sqrt" ? Math.sqrt(x) : x));
    },
  },
  LinearWarmupLR: {
    options: fc.record(
      { warmupSteps: whole(1, 30), startLr: perGroup(-1, 0), endLr: perGroup(0.001, 3) },
      { requiredKeys: ["warmupSteps"] },
    ),
    lr: (epoch, base, { warmupSteps, startLr = 0, endLr = base }: Readonly<Record<string, number>>, group) => {
      if (epoch >= warmupSteps!) return base;
      return of(startLr, group) + ((of(endLr, group) - of(startLr, group)) * epoch) / warmupSteps!;
    },
  },
};

describe.each(Object.entries(FORMULAS))("%s", (name, { options, lr }) => {
  it.each([-1, 17])("has its formula's rates, resumed after step %d", (resumeAt) => {
    const bases = fc.tuple(real(0.001, 2), real(0.001, 2));
    fc.assert(
      fc.property(bases, options, (lrs, given) => {
        const ours = ourTrace({ lrs, recipes: [{ name, options: given }], steps: STEPS }, resumeAt);
        const differences = ours.flatMap((groups, epoch) =>
          groups.map(([rate], g) => Math.abs(rate - lr(epoch, lrs[g]!, given as never, g))),
        );
        expect(differences.findIndex((difference) => !(difference <= 1e-12))).toBe(-1);
      }),
      { numRuns: 60 },
    );
  });
});
