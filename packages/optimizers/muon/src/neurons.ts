/** NorMuon: directions whose rows, the weights of one neuron each, are about equally long. */
import {
  add,
  defineRule,
  div,
  empty,
  fusedLerp,
  mul,
  type Rule,
  type Shape,
  type Staged,
  type StagedStep,
  sqrt,
  type Tensor,
} from "@opt/core";
import { lrFactor, type MatrixOptions, matricesIn } from "./matrices";

const EPS = 1e-10;

/** The next average of a row's mean square, 1 / its root, and the mean square of the row divided by it. */
const neuronRule = /* @__PURE__ */ defineRule({
  name: "muonNeurons",
  buffers: ["next", "inverse", "share", "mean", "average"],
  scalars: ["neuronWeight"],
  update({ mean, average }, { neuronWeight }) {
    const next = fusedLerp(average, mean, neuronWeight);
    const inverse = div(1, add(sqrt(next), EPS));
    return { next, inverse, share: mul(mean, mul(inverse, inverse)) };
  },
});

export const neuronRules: readonly Rule[] = [neuronRule];

/** The averages: one number for each row of a matrix, whichever heads it has. */
export const stateShapes = (shape: Shape): Readonly<Record<string, Shape>> => ({
  neuron_sq: shape.slice(0, shape.length === 3 ? 2 : 1),
});

/**
 * Divides each row by the root of its average mean square, and gives each matrix the norm that it had. Directions have the factor of lr
 * already. Source: Li et al., "NorMuon: Making Muon more efficient and scalable" (2025), and its authors' program.
 */
export function balanced<Options extends MatrixOptions>(
  directions: readonly Tensor[],
  {
    options,
    states,
    launch,
  }: Pick<StagedStep<Options & { lr: number; maximize: boolean }>, "options" | "states" | "launch">,
): Staged {
  const members = directions.map((direction, i) => {
    const [count, rows, columns] = matricesIn(direction.shape, options);
    const matrices = direction.reshape([count, rows, columns]);
    const factor = lrFactor(direction.shape, options);
    const mean = mul(matrices, matrices)
      .sum(2)
      .div(columns * factor ** 2);
    const [next, inverse, share] = [0, 1, 2].map(() =>
      empty([count, rows], { dtype: direction.dtype, device: direction.device }),
    ) as [Tensor, Tensor, Tensor];
    const state = states[i]!.get("neuron_sq")!;
    return { direction, matrices, mean, state, average: state.reshape([count, rows]), next, inverse, share, columns };
  });
  launch(
    neuronRule,
    members.map(({ next, inverse, share, mean, average }) => [next, inverse, share, mean, average]),
  );
  return {
    directions: members.map(({ direction, matrices, mean, inverse, share, columns }) => {
      const norm = (squares: Tensor) => sqrt(squares.sum(1, true).mul(columns));
      const lengths = mul(inverse, div(norm(mean), add(norm(share), EPS)));
      return mul(matrices, lengths.unsqueeze(2)).reshape(direction.shape);
    }),
    states: members.map(({ state, next }) => [state, next.reshape(state.shape)] as const),
  };
}
