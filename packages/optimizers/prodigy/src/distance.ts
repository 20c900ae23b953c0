/** The estimate d of the distance from the start to a solution, from all parameters together. */
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
  type Tensor,
  type Together,
  where,
} from "@opt/core";

export const BUFFERS = ["param", "grad", "expAvg", "expAvgSq", "direction"] as const;

/** The direction is the gradient: stages look at it, and the rule after them takes it as it is. */
export const gradientRule = /* @__PURE__ */ defineRule({
  name: "prodigyGradient",
  buffers: BUFFERS,
  scalars: [],
  update: ({ grad }) => ({ direction: grad }),
});

/** Buffers of a rule that computes scalars of one parameter: how the sum of gradients goes on, and the numerator of the estimate. */
export const ESTIMATE = ["keep", "weight", "next", "share", "numerator", "d", "inner"] as const;

/** The sum of gradients, and scalars. */
export const sumShapes = (shape: Shape): Readonly<Record<string, Shape>> => ({ grad_sum: shape, numerator: [], d: [] });

interface EstimateOptions {
  lr: number;
  maximize: boolean;
}

/**
 * What each parameter has of the numerator and the denominator of the estimate.
 *
 * @param rule of the buffers `ESTIMATE`
 * @param inners the inner product of each gradient, from which the numerator grows
 */
export function estimatedBy<Options extends EstimateOptions>(
  gradients: readonly Tensor[],
  { states, launch }: Pick<StagedStep<Options>, "states" | "launch">,
  rule: Rule,
  inners: readonly Tensor[],
): Staged {
  const members = gradients.map((gradient, i) => {
    const [sum, numerator, d] = ["grad_sum", "numerator", "d"].map((key) => states[i]!.get(key)!) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const [keep, weight, next, share] = [0, 1, 2, 3].map(() =>
      empty([], { dtype: gradient.dtype, device: gradient.device }),
    ) as [Tensor, Tensor, Tensor, Tensor];
    return { gradient, sum, numerator, d, keep, weight, next, share, inner: inners[i]! };
  });
  launch(
    rule,
    members.map((member) => ESTIMATE.map((name) => member[name])),
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
