/** The stages of Adafactor: running averages of squares by row and column, and the variance that they estimate. */
import {
  defineRule,
  div,
  emptyLike,
  fusedLerp,
  maximum,
  norms,
  type Rule,
  type Shape,
  type Staged,
  type StagedStep,
  sqrt,
  type Tensor,
} from "@opt/core";

const averageRule = /* @__PURE__ */ defineRule({
  name: "adafactorAverage",
  buffers: ["next", "average", "mean"],
  scalars: ["weight"],
  update: ({ average, mean }, { weight }) => ({ next: fusedLerp(average, mean, weight) }),
});

/** |u| from g^2. */
const magnitudeRule = /* @__PURE__ */ defineRule({
  name: "adafactorMagnitude",
  buffers: ["square", "variance"],
  scalars: ["leastVariance"],
  update: ({ square, variance }, { leastVariance }) => ({
    square: sqrt(div(square, maximum(variance, leastVariance))),
  }),
});

export const stageRules: readonly Rule[] = [averageRule, magnitudeRule];

/** The averages of a parameter: two factors for matrices and more, one for each element of others. */
export function stateShapes(shape: Shape): Readonly<Record<string, Shape>> {
  if (shape.length < 2) return { variance: shape };
  const [rows, columns] = shape.slice(-2) as [number, number];
  const batch = shape.slice(0, -2);
  return { row_var: [...batch, rows, 1], col_var: [...batch, 1, columns] };
}

/** The means of squares that each average follows. */
function meansOf(square: Tensor): Readonly<Record<string, Tensor>> {
  if (square.shape.length < 2) return { variance: square };
  return { row_var: square.mean(-1, true), col_var: square.mean(-2, true) };
}

/** The distance from 1 to the next number. */
const PRECISION: Readonly<Record<string, number>> = { f32: 2 ** -23, f64: 2 ** -52 };

/** For each parameter the variance of its gradient's elements, from their squares, and the norm of the update that it gives. */
export function varianceEstimates(
  squares: readonly Tensor[],
  {
    options,
    params,
    states,
    launch,
  }: StagedStep<{ eps: readonly [number | null, number]; lr: number; maximize: boolean }>,
): Staged {
  const eps1 = options.eps[0] ?? PRECISION[squares[0]!.dtype]!;
  const averages = squares.map((square, i) =>
    Object.entries(meansOf(square)).map(([key, mean]) => ({
      key,
      mean,
      average: states[i]!.get(key)!,
      next: emptyLike(mean),
    })),
  );
  launch(
    averageRule,
    averages.flat().map(({ next, average, mean }) => [next, average, mean]),
  );
  const variances = averages.map(([first, column]) => {
    if (column === undefined) return first!.next;
    const row = first!.next;
    return row.div(row.mean(-2, true).maximum(eps1)).mul(column.next);
  });
  const leastVariance = eps1 * eps1;
  // The squares are not needed any more.
  launch(
    magnitudeRule,
    squares.map((square, i) => [square, variances[i]!]),
    { leastVariance },
  );
  return {
    directions: variances,
    scalars: {
      leastVariance: squares.map(() => leastVariance),
      rootSize: params.map(({ size }) => Math.sqrt(size)),
      paramNorm: norms(params),
      updateNorm: norms(squares),
    },
    states: averages.flat().map(({ average, next }) => [average, next] as const),
  };
}
