import { expect, it } from "vitest";
import { defineRule } from "../rule/rule";
import { add, div, fma, less, mul, neg, sqrt, sub, where } from "../rule/symbols";
import { indent } from "./blocks";
import { writeRuleLoop } from "./javascript";

const rule = defineRule({
  name: "example",
  buffers: ["param", "grad", "velocity"],
  scalars: ["lr", "decay"],
  update({ param, grad, velocity }, { lr, decay }) {
    const v = fma(decay, velocity, where(less(grad, 0), -1, mul(grad, 0.1)));
    return { param: sub(param, div(mul(sqrt(lr), v), add(neg(lr), -0))), velocity: v };
  },
});

it("keeps names under a prefix, names what is used twice, and computes once what no buffer enters", () => {
  expect(writeRuleLoop(rule.program, "f32")).toMatchInlineSnapshot(`
    "const v_lr = fround(scalars[0]);
    const t0 = fround(sqrt(v_lr));
    const v_decay = fround(scalars[1]);
    const t1 = fround(((-v_lr) + (-0)));
    for (let i = start; i < end; i++) {
      const v_param = paramArray[i];
      const v_velocity = velocityArray[i];
      const v_grad = gradArray[i];
      const velocityNew = fma32(v_decay, v_velocity, ((v_grad < 0) ? (-1) : fround((v_grad * 0.10000000149011612))));
      const paramNew = fround((v_param - fround((fround((t0 * velocityNew)) / t1))));
      paramArray[i] = paramNew;
      velocityArray[i] = velocityNew;
    }"
  `);
});

it("rounds nothing in float64", () => {
  expect(writeRuleLoop(rule.program, "f64")).toMatchInlineSnapshot(`
    "const v_lr = scalars[0];
    const t0 = sqrt(v_lr);
    const v_decay = scalars[1];
    const t1 = ((-v_lr) + (-0));
    for (let i = start; i < end; i++) {
      const v_param = paramArray[i];
      const v_velocity = velocityArray[i];
      const v_grad = gradArray[i];
      const velocityNew = fma64(v_decay, v_velocity, ((v_grad < 0) ? (-1) : (v_grad * 0.1)));
      const paramNew = (v_param - ((t0 * velocityNew) / t1));
      paramArray[i] = paramNew;
      velocityArray[i] = velocityNew;
    }"
  `);
});

it("reads and writes stored formats through their conversions", () => {
  const rule = defineRule({
    name: "stored",
    buffers: ["param", "grad"],
    scalars: [],
    update: ({ param, grad }) => ({ param: add(param, grad) }),
  });
  const loop = writeRuleLoop(rule.program, "f32", ["bf16", "f32"]);
  expect(loop).toContain("from_bf16(paramArray[i])");
  expect(loop).toContain("to_bf16(");
  expect(loop).not.toContain("gradArray[i])");
});

it("lines are indented by two blanks, or by a depth", () => {
  expect([indent(["a"]), indent(["a", "b"], 4)]).toEqual([["  a"], ["    a", "    b"]]);
});
