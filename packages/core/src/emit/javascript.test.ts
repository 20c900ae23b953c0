import { expect, it } from "vitest";
import { defineRule } from "../rule/rule";
import { add, div, fma, less, mul, neg, select, sqrt, sub } from "../rule/symbols";
import { writeRuleLoop } from "./javascript";

const rule = defineRule({
  name: "example",
  buffers: ["param", "grad", "velocity"],
  scalars: ["lr", "decay"],
  update({ param, grad, velocity }, { lr, decay }) {
    const v = fma(decay, velocity, select(less(grad, 0), -1, mul(grad, 0.1)));
    return { param: sub(param, div(mul(sqrt(lr), v), add(neg(lr), -0))), velocity: v };
  },
});

it("keeps names, names what is used twice, and computes once what no buffer enters", () => {
  expect(writeRuleLoop(rule.program, "f32")).toMatchInlineSnapshot(`
    "const lr = fround(scalars[0]);
    const t0 = fround(sqrt(lr));
    const decay = fround(scalars[1]);
    const t1 = fround(((-lr) + (-0)));
    for (let i = start; i < end; i++) {
      const param = paramArray[i];
      const velocity = velocityArray[i];
      const grad = gradArray[i];
      const velocityNew = fma32(decay, velocity, ((grad < 0) ? (-1) : fround((grad * 0.10000000149011612))));
      const paramNew = fround((param - fround((fround((t0 * velocityNew)) / t1))));
      paramArray[i] = paramNew;
      velocityArray[i] = velocityNew;
    }"
  `);
});

it("rounds nothing in float64", () => {
  expect(writeRuleLoop(rule.program, "f64")).toMatchInlineSnapshot(`
    "const lr = scalars[0];
    const t0 = sqrt(lr);
    const decay = scalars[1];
    const t1 = ((-lr) + (-0));
    for (let i = start; i < end; i++) {
      const param = paramArray[i];
      const velocity = velocityArray[i];
      const grad = gradArray[i];
      const velocityNew = fma64(decay, velocity, ((grad < 0) ? (-1) : (grad * 0.1)));
      const paramNew = (param - ((t0 * velocityNew) / t1));
      paramArray[i] = paramNew;
      velocityArray[i] = velocityNew;
    }"
  `);
});
