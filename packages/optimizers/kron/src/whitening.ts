/** The stages of Kron: the average of gradients, the update of the factors, and the whitened direction. */
import {
  type Counters,
  defineRule,
  div,
  emptyLike,
  fma,
  minimum,
  mul,
  type Rule,
  type Shape,
  type Staged,
  type StagedStep,
  type Tensor,
  triu,
} from "@opt/core";
import {
  balanced,
  type FactorOptions,
  factorShapes,
  identity,
  multiplied,
  normBound,
  outerOf,
  sidesOf,
  solved,
  TINY,
} from "./factors";

/** The options that stages read. */
interface WhiteningOptions extends FactorOptions {
  readonly seed: number;
  lr: number;
  maximize: boolean;
}

const averageRule = /* @__PURE__ */ defineRule({
  name: "kronAverage",
  buffers: ["nextAvg", "average", "momentumBuffer", "gradient"],
  scalars: ["momentum", "oneMinusMomentum", "biasCorrection"],
  update({ momentumBuffer, gradient }, { momentum, oneMinusMomentum, biasCorrection }) {
    const nextAvg = fma(oneMinusMomentum, gradient, mul(momentumBuffer, momentum));
    return { nextAvg, average: div(nextAvg, biasCorrection) };
  },
});

const factorRule = /* @__PURE__ */ defineRule({
  name: "kronFactor",
  buffers: ["next", "factor", "change"],
  scalars: ["negPreconditionerLr"],
  update: ({ factor, change }, { negPreconditionerLr }) => ({ next: fma(negPreconditionerLr, change, factor) }),
});

export const stageRules: readonly Rule[] = [averageRule, factorRule];

/** Whitened directions have a root mean square of 1. */
const MOST_RMS = 1.1;
/** Updates from one balance of the factors to the next. */
const BALANCE_FREQUENCY = 100;

const keyOf = (side: number) => `factor_${side}`;

/** The average, and the factor of each side. */
export function stateShapes(shape: Shape, options: WhiteningOptions): Readonly<Record<string, Shape>> {
  const factors = factorShapes(shape, options).map((own, side) => [keyOf(side), own]);
  return { momentum_buffer: shape, ...Object.fromEntries(factors) };
}

/** What the step does with the factors: "begin" makes them, "first" also updates them, "balance" scales them before. */
export function phaseOf(_options: WhiteningOptions, { step, since_update: since, updates }: Counters): string {
  if (since! > 0) return step === 1 ? "begin" : "between";
  if (step === 1) return "first";
  return updates! % BALANCE_FREQUENCY === 0 ? "balance" : "update";
}

/** A parameter in this step. */
interface Member {
  /** The average of gradients without its bias, a vector for a scalar. */
  readonly average: Tensor;
  readonly states: readonly Tensor[];
  /** Of this step, before they are updated. */
  readonly factors: readonly Tensor[];
}

/** The directions of a step, and what its state becomes. */
export function whitened<Options extends WhiteningOptions>(
  gradients: readonly Tensor[],
  { options, counters, states, launch, normals }: StagedStep<Options>,
): Staged {
  const phase = phaseOf(options, counters);
  const averages = gradients.map((gradient, i) => {
    const buffer = states[i]!.get("momentum_buffer")!;
    return { nextAvg: emptyLike(gradient), average: emptyLike(gradient), buffer, gradient };
  });
  launch(
    averageRule,
    averages.map(({ nextAvg, average, buffer, gradient }) => [nextAvg, average, buffer, gradient]),
  );
  const members = averages.map(({ average }, i): Member => {
    const sides = sidesOf(average.shape);
    const all = sides.flatMap((_, side) => states[i]!.get(keyOf(side)) ?? []);
    const begun = phase === "first" || phase === "begin" ? all.map(identity) : all;
    return {
      average: average.reshape(sides),
      states: all,
      factors: phase === "balance" ? balanced(begun) : begun,
    };
  });
  const isUpdate = counters.since_update === 0;
  const changes = isUpdate ? members.flatMap((member) => changesOf(member, normals(member.average, options.seed))) : [];
  if (changes.length > 0) {
    launch(
      factorRule,
      changes.map(({ next, factor, change }) => [next, factor, change]),
    );
  }
  const next = new Map(changes.map(({ factor, next }) => [factor, next]));
  const directions = members.map(({ average, factors }, i) => {
    const own = factors.map((factor) => next.get(factor) ?? factor);
    return withinTrust(multiplied(multiplied(average, own), own, true)).reshape(gradients[i]!.shape);
  });
  const renewed = members.flatMap(({ states: old, factors }) =>
    old.flatMap((state, side) => {
      const factor = factors[side]!;
      const renewal = next.get(factor) ?? factor;
      return renewal === state ? [] : [[state, renewal] as const];
    }),
  );
  return { directions, states: [...averages.map(({ buffer, nextAvg }) => [buffer, nextAvg] as const), ...renewed] };
}

/** How the factors of a parameter change, by which -preconditionerLr is multiplied, with noise of the shape of its average. */
function changesOf({ average, factors }: Member, noise: Tensor) {
  const a = multiplied(average, factors);
  const b = solved(noise, factors);
  return factors.map((factor, side) => {
    const [ofAverage, ofNoise] = [outerOf(a, side, factor), outerOf(b, side, factor)];
    const difference = ofAverage.sub(ofNoise);
    const bound = normBound(ofAverage.add(ofNoise)).add(TINY);
    const change =
      factor.shape.length === 1 ? difference.mul(factor).div(bound) : triu(difference).div(bound).matmul(factor);
    return { factor, change, next: emptyLike(factor) };
  });
}

/** The direction, its root mean square at most `MOST_RMS`. */
function withinTrust(direction: Tensor): Tensor {
  if (direction.size === 0) return direction;
  const rms = direction.mul(direction).mean().sqrt().add(1e-8);
  return direction.mul(minimum(rms.pow(-1).mul(MOST_RMS), 1));
}
