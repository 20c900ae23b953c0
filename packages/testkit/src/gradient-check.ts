/** Gradients of the tape against central finite differences, both in float64. */
import { noGrad, parameter, type Tensor, tensor } from "@opt/core";
import { expect } from "vitest";
import type { Tolerance } from "./numbers/compare";
import { Random } from "./numbers/random";
import "./numbers/matcher";

export interface GradCheckOptions {
  /** Of the distance between tape and differences. The differences themselves are good to about 1e-9. */
  readonly tolerance?: Tolerance;
  /** Chooses the weights with which the elements of the output are added up. */
  readonly seed?: number;
  /** Tries so many random directions through all inputs at once, in place of every element. */
  readonly directions?: number;
}

/** (f(x + h) - f(x - h)) / 2h errs by h^2 and by epsilon / h: least near the cube root of epsilon. */
const STEP = 2 ** -17;

/**
 * Checks the gradient of every element of every input. Each output element has a weight of its own, so none can hide.
 * `fn` must be smooth near its inputs: keep away from kinks and ties.
 *
 * @example
 * await gradCheck((x, w) => x.matmul(w).tanh(), [randn([3, 4]), randn([4, 2])]);
 */
export async function gradCheck(
  fn: (...inputs: Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  { tolerance = { absolute: 1e-7, relative: 1e-6 }, seed = 1, directions }: GradCheckOptions = {},
): Promise<void> {
  const points = await Promise.all(inputs.map(async (input) => Float64Array.from(await input.data())));
  const { device } = inputs[0]!;
  const leaves = inputs.map((input, i) => parameter(points[i]!, { shape: input.shape, dtype: "f64", device }));
  const output = fn(...leaves);
  const random = new Random(seed);
  const weights = tensor(
    Float64Array.from({ length: output.size }, () => random.normal()),
    { shape: output.shape, dtype: "f64", device },
  );
  output.mul(weights).sum().backward();
  const value = async () =>
    Number(
      await noGrad(() =>
        fn(...leaves)
          .mul(weights)
          .sum(),
      ).item(),
    );
  // An input that the output does not depend on may be left without a gradient.
  const gradientOf = async (i: number) => (await leaves[i]!.grad?.data()) ?? new Float64Array(points[i]!.length);
  for (let direction = 0; direction < (directions ?? 0); direction++) {
    const moves = points.map((point) => point.map(() => random.normal()));
    const at = async (step: number) => {
      for (const [i, leaf] of leaves.entries()) leaf.set(points[i]!.map((x, j) => x + step * moves[i]![j]!));
      return value();
    };
    const numeric = ((await at(STEP)) - (await at(-STEP))) / (2 * STEP);
    let analytic = 0;
    for (const [i, move] of moves.entries()) {
      const gradient = await gradientOf(i);
      for (const [j, x] of move.entries()) analytic += gradient[j]! * x;
    }
    expect(analytic, `gradient along direction ${direction}`).toAgreeWith(numeric, tolerance);
  }
  if (directions !== undefined) return;
  for (const [i, leaf] of leaves.entries()) {
    const point = points[i]!;
    const numeric = new Float64Array(point.length);
    for (let j = 0; j < point.length; j++) {
      const at = async (x: number) => {
        const moved = point.slice();
        moved[j] = x;
        leaf.set(moved);
        return value();
      };
      const h = STEP * Math.max(1, Math.abs(point[j]!));
      const [above, below] = [point[j]! + h, point[j]! - h];
      numeric[j] = ((await at(above)) - (await at(below))) / (above - below);
    }
    leaf.set(point);
    expect(await gradientOf(i), `gradient of input ${i}, [${leaf.shape}]`).toAgreeWith(numeric, tolerance);
  }
}
