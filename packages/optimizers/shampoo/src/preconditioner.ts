/** The stages of Shampoo: averages, factor matrices and their inverse roots, and the norm of another method's direction. */
import {
  add,
  type Counters,
  defineRule,
  div,
  eigh,
  einsum,
  emptyLike,
  fma,
  mul,
  nanToNum,
  norms,
  type Rule,
  type Shape,
  type Staged,
  type StagedStep,
  sqrt,
  type Tensor,
} from "@opt/core";
import { blockShapes, blocksOf, joined } from "./blocks";

/** The method whose step length is taken. */
export interface ShampooGrafting {
  readonly kind: "adam" | "rmsprop" | "sgd";
  /** Decay rate of the average of squares, in [0, 1). Default 0.999, for RMSprop 0.99. */
  readonly beta2?: number;
  /** Added to the denominator, >= 0. Default 1e-8. */
  readonly eps?: number;
}

/** The options that stages read. */
interface PreconditionerOptions {
  readonly eps: number;
  readonly grafting: ShampooGrafting;
  readonly blockSize: number;
  readonly preconditionFrequency: number;
  readonly startStep: number | null;
  lr: number;
  maximize: boolean;
}

const AVERAGE_SCALARS = ["beta1", "oneMinusBeta1", "biasCorrection1"] as const;

/** The average of gradients, without its bias. It is the direction of SGD. */
const averageRule = /* @__PURE__ */ defineRule({
  name: "shampooAverage",
  buffers: ["nextAvg", "filtered", "expAvg", "gradient"],
  scalars: AVERAGE_SCALARS,
  update({ expAvg, gradient }, { beta1, oneMinusBeta1, biasCorrection1 }) {
    const nextAvg = fma(oneMinusBeta1, gradient, mul(expAvg, beta1));
    return { nextAvg, filtered: div(nextAvg, biasCorrection1) };
  },
});

/** The same, and the direction of Adam or RMSprop. */
const graftingRule = /* @__PURE__ */ defineRule({
  name: "shampooGrafting",
  buffers: ["nextAvg", "filtered", "nextSq", "grafted", "expAvg", "expAvgSq", "gradient"],
  scalars: [...AVERAGE_SCALARS, "graftingBeta2", "oneMinusGraftingBeta2", "graftingCorrection2", "graftingEps"],
  update({ expAvg, expAvgSq, gradient }, scalars) {
    const nextAvg = fma(scalars.oneMinusBeta1, gradient, mul(expAvg, scalars.beta1));
    const nextSq = fma(scalars.oneMinusGraftingBeta2, mul(gradient, gradient), mul(expAvgSq, scalars.graftingBeta2));
    const filtered = div(nextAvg, scalars.biasCorrection1);
    const denom = add(sqrt(div(nextSq, scalars.graftingCorrection2)), scalars.graftingEps);
    return { nextAvg, filtered, nextSq, grafted: div(filtered, denom) };
  },
});

/** The sum or the running average of outer products. */
const factorRule = /* @__PURE__ */ defineRule({
  name: "shampooFactor",
  buffers: ["next", "factor", "outer"],
  scalars: ["beta2", "factorWeight"],
  update: ({ factor, outer }, { beta2, factorWeight }) => ({ next: fma(factorWeight, outer, mul(factor, beta2)) }),
});

/** A factor without its bias. */
const unbiasedRule = /* @__PURE__ */ defineRule({
  name: "shampooUnbiased",
  buffers: ["unbiased", "next"],
  scalars: ["biasCorrection2"],
  update: ({ next }, { biasCorrection2 }) => ({ unbiased: div(next, biasCorrection2) }),
});

export const stageRules: readonly Rule[] = [averageRule, graftingRule, factorRule, unbiasedRule];

/** Of the norm by which a direction is divided. */
const TINY = 1e-16;

const keyOf = (what: "factor" | "inverse_root", block: number, side: number) => `${what}_${block}_${side}`;

/** A block whose sides have preconditioners: scalars and empty tensors have none. */
const isPreconditioned = (shape: Shape) => !shape.includes(0);

/** The averages, and for each side of each block its factor and the inverse root of that. */
export function stateShapes(shape: Shape, { blockSize, grafting }: PreconditionerOptions) {
  const squares = blockShapes(shape, blockSize)
    .filter(isPreconditioned)
    .flatMap((extents, block) =>
      extents.flatMap((extent, side) =>
        (["factor", "inverse_root"] as const).map((what) => [keyOf(what, block, side), [extent, extent]] as const),
      ),
    );
  return {
    exp_avg: shape,
    ...(grafting.kind !== "sgd" && { exp_avg_sq: shape }),
    ...Object.fromEntries(squares),
  };
}

/** The first step that Shampoo's direction takes. */
const firstStep = ({ startStep, preconditionFrequency }: PreconditionerOptions) => startStep ?? preconditionFrequency;

/** "grafted" steps by the grafted method alone, "refresh" computes the inverse roots. */
export function phaseOf(options: PreconditionerOptions, { step }: Counters): string {
  const first = firstStep(options);
  if (step < first) return "grafted";
  return step === first || step % options.preconditionFrequency === 0 ? "refresh" : "between";
}

/** A matrix for `eigh`, which rejects what is not finite. A step that is skipped for that gets here. */
const finite = (x: Tensor) => nanToNum(x, { nan: 0, posinf: 0, neginf: 0 });

/** The axes of x by letters, and with another letter for one of them. */
function axes(x: Tensor, side: number): readonly [all: string, other: string] {
  const letters = x.shape.map((_, i) => String.fromCharCode(97 + i));
  return [letters.join(""), letters.with(side, "z").join("")];
}

/** The products of x with itself over all sides but one. */
function outerOf(x: Tensor, side: number): Tensor {
  const [all, other] = axes(x, side);
  return einsum(`${all},${other}->${all[side]}z`, x, x);
}

/** x by a symmetric matrix for each side. */
function turned(x: Tensor, matrices: readonly Tensor[]): Tensor {
  return matrices.reduce((result, matrix, side) => {
    const [all, other] = axes(result, side);
    return einsum(`z${all[side]},${all}->${other}`, matrix, result);
  }, x);
}

/** (x - min(0, smallest eigenvalue) I + eps I)^(-1 / root) */
function inverseRoot(x: Tensor, root: number, eps: number): Tensor {
  const { eigenvalues, eigenvectors } = eigh(finite(x));
  const powers = eigenvalues
    .sub(eigenvalues.slice(0, 1).minimum(0))
    .add(eps)
    .pow(-1 / root);
  return eigenvectors.mul(powers).matmul(eigenvectors, { transposeB: true });
}

/** A side of a block and what becomes of it. */
interface Side {
  readonly factor: Tensor;
  readonly nextFactor: Tensor;
  readonly inverseRoot: Tensor;
  readonly outer: Tensor;
  /** 2 * the number of sides. */
  readonly root: number;
}

/** A parameter in this step. */
interface Member {
  readonly gradient: Tensor;
  readonly state: ReadonlyMap<string, Tensor>;
  /** Of its blocks, none where it has no preconditioners. */
  readonly blocks: readonly (readonly Side[])[];
}

function memberOf(gradient: Tensor, state: ReadonlyMap<string, Tensor>, blockSize: number): Member {
  const blocks = blocksOf(gradient, blockSize).map((block, b) =>
    block.shape.flatMap((_, side): Side[] => {
      const factor = state.get(keyOf("factor", b, side));
      if (factor === undefined) return [];
      const inverse = state.get(keyOf("inverse_root", b, side))!;
      const outer = outerOf(block, side);
      return [{ factor, nextFactor: emptyLike(factor), inverseRoot: inverse, outer, root: 2 * block.shape.length }];
    }),
  );
  return { gradient, state, blocks };
}

/** The directions of a step, and what its state becomes. */
export function preconditioned<Options extends PreconditionerOptions>(
  gradients: readonly Tensor[],
  { options, counters, states, launch }: StagedStep<Options>,
): Staged {
  const { blockSize, eps, grafting } = options;
  const phase = phaseOf(options, counters);
  const members = gradients.map((gradient, i) => memberOf(gradient, states[i]!, blockSize));
  const sides = members.flatMap(({ blocks }) => blocks.flat());
  const moments = members.map((member) => momentsOf(member, grafting));
  launch(
    grafting.kind === "sgd" ? averageRule : graftingRule,
    moments.map(({ buffers }) => buffers),
  );
  if (sides.length > 0) {
    launch(
      factorRule,
      sides.map(({ nextFactor, factor, outer }) => [nextFactor, factor, outer]),
    );
  }
  const roots = new Map(sides.map((side) => [side, side.inverseRoot]));
  if (phase === "refresh" && sides.length > 0) {
    const unbiased = sides.map(({ nextFactor }) => emptyLike(nextFactor));
    launch(
      unbiasedRule,
      sides.map(({ nextFactor }, i) => [unbiased[i]!, nextFactor]),
    );
    for (const [i, side] of sides.entries()) roots.set(side, inverseRoot(unbiased[i]!, side.root, eps));
  }
  const directions = members.map(({ gradient, blocks }, i) => {
    const { filtered, grafted } = moments[i]!;
    if (phase === "grafted") return grafted;
    const lengths = blocksOf(grafted, blockSize);
    const parts = blocksOf(filtered, blockSize).map((block, b) => {
      const matrices = blocks[b]!.map((side) => roots.get(side)!);
      return grafted === filtered && matrices.length === 0 ? block : asLongAs(turned(block, matrices), lengths[b]!);
    });
    return joined(parts, gradient.shape, blockSize);
  });
  const renewed = sides.map(({ factor, nextFactor }) => [factor, nextFactor] as const);
  const refreshed = phase === "refresh" ? sides.map((side) => [side.inverseRoot, roots.get(side)!] as const) : [];
  return { directions, states: [...moments.flatMap(({ states }) => states), ...renewed, ...refreshed] };
}

/** x with the norm of another tensor. */
function asLongAs(x: Tensor, other: Tensor): Tensor {
  const [length, own] = [norms([other]), norms([x])];
  return x.mul(length.div(own.add(TINY)).reshape([]));
}

/** The buffers of the launch that makes a parameter's averages, and what of them is state. */
function momentsOf({ gradient, state }: Member, { kind }: ShampooGrafting) {
  const expAvg = state.get("exp_avg")!;
  const [nextAvg, filtered] = [emptyLike(gradient), emptyLike(gradient)];
  const average = [expAvg, nextAvg] as const;
  if (kind === "sgd")
    return { buffers: [nextAvg, filtered, expAvg, gradient], filtered, grafted: filtered, states: [average] };
  const expAvgSq = state.get("exp_avg_sq")!;
  const [nextSq, grafted] = [emptyLike(gradient), emptyLike(gradient)];
  const buffers = [nextAvg, filtered, nextSq, grafted, expAvg, expAvgSq, gradient];
  return { buffers, filtered, grafted, states: [average, [expAvgSq, nextSq] as const] };
}
