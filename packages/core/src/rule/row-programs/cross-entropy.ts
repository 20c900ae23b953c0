/** Cross-entropy of rows of logits with a label each, and its gradient. */
import { atLabel, defineRows, largest, narrow, sum, weight, widen } from "../rows/row-program";
import { add, div, log, mul, neg, sub } from "../symbols";

/** log(sum(exp(x))) - x[label], around the largest. */
export const crossEntropyRows = /* @__PURE__ */ defineRows({
  name: "crossEntropy",
  inputs: { x: "matrix" },
  labels: true,
  rows({ x }) {
    const most = largest(x);
    const distance = widen(sub(most, atLabel(x)));
    return { loss: narrow(add(distance, log(sum(weight(sub(x, most)))))) };
  },
});

/** g (softmax(x) - 1 at the label), where the sum of the other weights is what does not cancel. */
export const crossEntropyGradRows = /* @__PURE__ */ defineRows({
  name: "crossEntropyGrad",
  inputs: { x: "matrix", g: "number" },
  labels: true,
  rows({ x, g }) {
    const weights = weight(sub(x, largest(x)));
    const total = sum(weights);
    const scale = div(widen(g), total);
    const others = sub(total, widen(atLabel(weights)));
    return { dx: { each: mul(weights, narrow(scale)), atLabel: narrow(mul(neg(others), scale)) } };
  },
});
