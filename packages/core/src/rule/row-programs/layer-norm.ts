/** Layer normalisation of rows and its gradients. */
import { columns, defineRows, narrow, type RowExpression, sum, widen } from "../rows/row-program";
import { add, div, mul, sqrt, sub } from "../symbols";

/** (x - mean) rstd w + b. The variance is summed from distances, and the mean used in two parts: rows may lie far from 0. */
export const layerNormRows = /* @__PURE__ */ defineRows({
  name: "layerNorm",
  inputs: { x: "matrix", w: "vector", b: "vector" },
  scalars: ["eps"],
  rows({ x, w, b }, { eps, count }) {
    const middle = div(sum(x), count);
    const distance = sub(x, middle);
    const variance = div(sum(mul(distance, distance)), count);
    const [mean, rstd] = [narrow(middle), narrow(div(1, sqrt(add(variance, eps))))];
    const rest = narrow(sub(middle, widen(mean)));
    return { y: add(mul(mul(sub(sub(x, mean), rest), rstd), w), b), mean, rstd };
  },
});

const GRADIENT_INPUTS = { x: "matrix", w: "vector", mean: "number", rstd: "number", g: "matrix" } as const;

type GradientInputs = Record<keyof typeof GRADIENT_INPUTS, RowExpression>;

function gradients({ x, w, mean, rstd, g }: GradientInputs, count: RowExpression) {
  const h = mul(sub(x, mean), rstd);
  const d = mul(g, w);
  const [meanD, meanDH] = [d, mul(d, h)].map((terms) => narrow(div(sum(terms), count))) as [typeof d, typeof d];
  return { dx: mul(rstd, sub(sub(d, meanD), mul(h, meanDH))), dw: columns(mul(g, h)), db: columns(g) };
}

/** With h = (x - mean) rstd and d = g w: rstd (d - mean(d) - h mean(d h)). */
export const layerNormGradRows = /* @__PURE__ */ defineRows({
  name: "layerNormGrad",
  inputs: GRADIENT_INPUTS,
  rows: (given, { count }) => gradients(given, count),
});

/** The gradient of layerNorm, and `r` is added to dx. */
export const layerNormGradAddRows = /* @__PURE__ */ defineRows({
  name: "layerNormGradAdd",
  // Written out: bundlers keep what is spread.
  inputs: { x: "matrix", w: "vector", mean: "number", rstd: "number", g: "matrix", r: "matrix" },
  rows({ r, ...given }, { count }) {
    const { dx, ...rest } = gradients(given, count);
    return { dx: add(r, dx), ...rest };
  },
});
