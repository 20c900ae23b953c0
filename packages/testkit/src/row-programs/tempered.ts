/** log-softmax of numbers that are multiplied before, and its gradient: row programs that no op of core has. */
import { log, mul, sub } from "@opt/core";
import { defineRows, largest, narrow, sum, weight } from "@opt/core/backend";

/** log(softmax(coldness x)). */
export const temperedRows = defineRows({
  name: "tempered",
  inputs: { x: "matrix" },
  scalars: ["coldness"],
  rows({ x }, { coldness }) {
    const scaled = mul(x, narrow(coldness));
    const shifted = sub(scaled, largest(scaled));
    return { y: sub(shifted, narrow(log(sum(weight(shifted))))) };
  },
});

/** coldness (g - exp(y) sum(g)). */
export const temperedGradRows = defineRows({
  name: "temperedGrad",
  inputs: { y: "matrix", g: "matrix" },
  scalars: ["coldness"],
  rows: ({ y, g }, { coldness }) => ({ dx: mul(sub(g, mul(weight(y), narrow(sum(g)))), narrow(coldness)) }),
});
