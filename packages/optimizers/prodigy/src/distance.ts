/** The stages of Prodigy: its estimate d of the distance from the start to a solution, from all parameters together. */
import {
  abs,
  add,
  concat,
  defineRule,
  div,
  empty,
  less,
  maximum,
  mul,
  type Rule,
  type Shape,
  type Staged,
  type StagedStep,
  sub,
  type Tensor,
  type Together,
  where,
} from "@opt/core";

/** Scalars of one parameter: how the sum of gradients goes on, and the numerator of the estimate. */
const estimateRules = /* @__PURE__ */ [false, true].map((safeguardWarmup) =>
  defineRule({
    name: safeguardWarmup ? "prodigyEstimateSafeguarded" : "prodigyEstimate",
    buffers: ["keep", "weight", "next", "share", "numerator", "d", "inner"],
    scalars: ["beta3", "rate", "d0", "dCoef"],
    update({ numerator, d, inner }, { beta3, rate, d0, dCoef }) {
      const stepSize = mul(d, rate);
      const next = add(mul(beta3, numerator), mul(mul(div(d, d0), stepSize), inner));
      const weight = div(mul(safeguardWarmup ? d : stepSize, d), d0);
      return { keep: add(beta3, 0), weight, next, share: mul(dCoef, next) };
    },
  }),
);

export const stageRules: readonly Rule[] = estimateRules;

/** The start, the sum of gradients, and scalars. */
export const stateShapes = (shape: Shape): Readonly<Record<string, Shape>> => ({
  initial_param: shape,
  grad_sum: shape,
  numerator: [],
  d: [],
});

interface EstimateOptions {
  readonly safeguardWarmup: boolean;
  lr: number;
  maximize: boolean;
}

/** What each parameter has of the numerator and the denominator. */
export function estimated<Options extends EstimateOptions>(
  gradients: readonly Tensor[],
  { options, params, states, launch }: StagedStep<Options>,
): Staged {
  const members = gradients.map((gradient, i) => {
    const [start, sum, numerator, d] = ["initial_param", "grad_sum", "numerator", "d"].map(
      (key) => states[i]!.get(key)!,
    ) as [Tensor, Tensor, Tensor, Tensor];
    const [keep, weight, next, share] = [0, 1, 2, 3].map(() =>
      empty([], { dtype: gradient.dtype, device: gradient.device }),
    ) as [Tensor, Tensor, Tensor, Tensor];
    const inner = mul(gradient, sub(start, params[i]!)).sum();
    return { gradient, sum, numerator, d, keep, weight, next, share, inner };
  });
  launch(
    estimateRules[options.safeguardWarmup ? 1 : 0]!,
    members.map(({ keep, weight, next, share, numerator, d, inner }) => [
      keep,
      weight,
      next,
      share,
      numerator,
      d,
      inner,
    ]),
  );
  const sums = members.map(({ sum, keep, gradient, weight }) => add(mul(sum, keep), mul(gradient, weight)));
  const listed = (scalars: readonly Tensor[]) => concat(scalars.map((scalar) => scalar.reshape([1])));
  const distances = listed(members.map(({ d }) => d));
  return {
    directions: gradients,
    scalars: { d: distances },
    found: {
      d: distances,
      numerator: listed(members.map(({ share }) => share)),
      denominator: listed(sums.map((sum) => abs(sum).sum())),
    },
    states: members.flatMap(({ sum, numerator, next }, i) => [[sum, sums[i]!] as const, [numerator, next] as const]),
  };
}

/** d never falls. */
export const together: Together = {
  found: ["d", "numerator", "denominator"],
  scalars: { nextD: "d" },
  compute({ d, numerator, denominator }) {
    const [above, below] = [numerator!.sum(), denominator!.sum()];
    return { nextD: maximum(d!.max(), where(less(0, below), div(above, below), 0)) };
  },
};
