/** softmax and log-softmax of rows, and their gradients from the results. */
import { defineRows, largest, narrow, sum, weight } from "../rows/row-program";
import { div, log, mul, sub } from "../symbols";

/** The weight of an element's distance from the largest, by their sum. */
export const softmaxRows = /* @__PURE__ */ defineRows({
  name: "softmax",
  inputs: { x: "matrix" },
  rows({ x }) {
    const weights = weight(sub(x, largest(x)));
    return { y: mul(weights, narrow(div(1, sum(weights)))) };
  },
});

/** The distance from the largest element, less the logarithm of the sum of weights. */
export const logSoftmaxRows = /* @__PURE__ */ defineRows({
  name: "logSoftmax",
  inputs: { x: "matrix" },
  rows({ x }) {
    const shifted = sub(x, largest(x));
    return { y: sub(shifted, narrow(log(sum(weight(shifted))))) };
  },
});

/** y (g - sum(g y)). */
export const softmaxGradRows = /* @__PURE__ */ defineRows({
  name: "softmaxGrad",
  inputs: { y: "matrix", g: "matrix" },
  rows: ({ y, g }) => ({ dx: mul(y, sub(g, narrow(sum(mul(g, y))))) }),
});

/** g - exp(y) sum(g). */
export const logSoftmaxGradRows = /* @__PURE__ */ defineRows({
  name: "logSoftmaxGrad",
  inputs: { y: "matrix", g: "matrix" },
  rows: ({ y, g }) => ({ dx: sub(g, mul(weight(y), narrow(sum(g)))) }),
});
