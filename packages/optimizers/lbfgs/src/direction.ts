/** The direction of a step: the two loops over the last changes of gradients, on flat vectors that stay on their device. */
import { applyRuleInPlace, defineRule, fma, mul, type Rule, sub, type Tensor } from "@opt/core";
import type { Vectors } from "./vectors";

/** One factor of a dot product for each element. */
const productRule = /* @__PURE__ */ defineRule({
  name: "lbfgsProduct",
  buffers: ["product", "a", "b"],
  scalars: [],
  update: ({ a, b }) => ({ product: mul(a, b) }),
});

/** Adds a multiple of a vector to the direction, and starts the next dot product in the same pass over memory. */
const directionRule = /* @__PURE__ */ defineRule({
  name: "lbfgsDirection",
  buffers: ["direction", "along", "next", "product"],
  scalars: ["plus", "minus", "ro", "scale"],
  update({ direction, along, next }, { plus, minus, ro, scale }) {
    const moved = mul(fma(sub(mul(plus, ro), mul(minus, ro)), along, direction), scale);
    return { direction: moved, product: mul(next, moved) };
  },
});

/** Moves a parameter along its part of the direction. */
export const moveRule = /* @__PURE__ */ defineRule({
  name: "lbfgsMove",
  buffers: ["param", "direction"],
  scalars: ["t"],
  update: ({ param, direction }, { t }) => ({ param: fma(t, direction, param) }),
});

/** Every rule, for kernel builds and tests. */
export const lbfgsRules: readonly Rule[] = [productRule, directionRule, moveRule];

/** One change of the gradient, y, by a step s, and 1 / (y s). */
export interface Change {
  readonly difference: Tensor;
  readonly step: Tensor;
  readonly ro: number;
}

/** The sum of a b, on the device. */
export function dot(vectors: Vectors, a: Tensor, b: Tensor): Tensor {
  const products = vectors.products();
  applyRuleInPlace(productRule, [{ product: products.own, a, b }], {});
  return vectors.sum(products);
}

/**
 * -H gradient, and its product with the gradient. H approximates the inverse of the Hessian by the changes, the oldest first, from
 * `scale` times the identity on.
 *
 * @source Nocedal & Wright, "Numerical Optimization", algorithm 7.4
 */
export function directionOf(
  vectors: Vectors,
  gradient: Tensor,
  changes: readonly Change[],
  scale: number,
): { direction: Tensor; slope: Tensor } {
  const direction = gradient.neg();
  const last = changes.at(-1);
  if (last === undefined) {
    const scaled = direction.mul(scale);
    return { direction: scaled, slope: dot(vectors, gradient, scaled) };
  }
  const products = vectors.products();
  const { own: product } = products;
  /** direction = (direction + (plus - minus) ro along) scale, product = next direction. */
  const add = (
    along: Tensor,
    next: Tensor,
    scalars: { plus: Tensor | number; minus: Tensor; ro: number; scale: number },
  ) => applyRuleInPlace(directionRule, [{ direction, along, next, product }], scalars);

  applyRuleInPlace(productRule, [{ product, a: last.step, b: direction }], {});
  const alphas: Tensor[] = [];
  for (let i = changes.length - 1; i >= 0; i--) {
    const { difference, ro } = changes[i]!;
    const next = i > 0 ? changes[i - 1]!.step : difference;
    alphas[i] = vectors.sum(products);
    add(difference, next, { plus: 0, minus: alphas[i]!, ro, scale: i > 0 ? 1 : scale });
  }
  for (const [i, { step, ro }] of changes.entries()) {
    const next = changes[i + 1]?.difference ?? gradient;
    add(step, next, { plus: alphas[i]!, minus: vectors.sum(products), ro, scale: 1 });
  }
  return { direction, slope: vectors.sum(products) };
}
