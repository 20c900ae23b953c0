import { expectCode, gradCheck, seededArray } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { parameter, tensor } from "../create";
import { interpretRule } from "../rule/interpret";
import { defineRule } from "../rule/rule";
import { add, div, fma, less, max, mul, neg, select, sqrt, sub } from "../rule/symbols";
import type { Tensor } from "../tensor";
import { applyRule } from "./apply-rule";

/** The shape of the adaptive methods, with every kind of op. */
const adaptive = defineRule({
  name: "adaptive",
  buffers: ["param", "grad", "square"],
  scalars: ["beta", "negLr"],
  update({ param, grad, square }, { beta, negLr }) {
    const v = max(fma(beta, sub(mul(grad, grad), square), square), 0.25);
    const step = select(less(negLr, -10), 0, mul(negLr, grad));
    return { param: add(param, div(step, add(sqrt(v), 1e-8))), square: v };
  },
});

const buffer = (seed: number, size = 5) => seededArray("f64", size, { seed }).map((x) => x + Math.sign(x));

describe("applyRule", () => {
  it.each(["f32", "f64"] as const)("computes what a launch does in %s, and changes nothing", (dtype) => {
    const arrays = [1, 2, 3].map((seed) => (dtype === "f32" ? Float32Array.from(buffer(seed)) : buffer(seed)));
    const [param, grad, square] = arrays.map((array) => tensor(array)) as [Tensor, Tensor, Tensor];
    const result = applyRule(adaptive, { param, grad, square }, { beta: 0.1, negLr: -0.3 });
    interpretRule(adaptive.program, dtype, arrays, [0.1, -0.3]);
    expect(result.param!.dataSync()).toAgreeWith(arrays[0]!);
    expect(result.square!.dataSync()).toAgreeWith(arrays[2]!);
    expect(param.dataSync()).not.toAgreeWith(arrays[0]!);
    expect(Object.keys(result)).toEqual(["param", "square"]);
  });

  it("has gradients with respect to buffers and scalars", async () => {
    const step = (param: Tensor, grad: Tensor, square: Tensor, beta: Tensor, negLr: Tensor) => {
      const next = applyRule(adaptive, { param, grad, square }, { beta, negLr });
      return next.param!.mul(2).add(next.square!);
    };
    const scalars = [tensor(0.3, { dtype: "f64" }), tensor(-0.2, { dtype: "f64" })];
    await gradCheck(step, [1, 2, 3].map((seed) => tensor(buffer(seed))).concat(scalars));
  });

  it("is unrolled: the gradient of a loss after three steps by the learning rate", async () => {
    const loss = (negLr: Tensor) => {
      let param = tensor(buffer(4));
      let square = tensor(new Float64Array(5));
      for (let step = 0; step < 3; step++) {
        const next = applyRule(adaptive, { param, grad: param.mul(2), square }, { beta: 0.1, negLr });
        [param, square] = [next.param!, next.square!];
      }
      return param.mul(param).sum();
    };
    await gradCheck(loss, [tensor(-0.1, { dtype: "f64" })]);
  });

  it("gives whole buffers where a rule writes constants or scalars", () => {
    const rule = defineRule({
      name: "set",
      buffers: ["a", "b"],
      scalars: ["s"],
      update: (_, { s }) => ({ a: neg(s), b: mul(s, s) }),
    });
    const [a, b] = [tensor([1, 2]), tensor([3, 4])];
    const s = parameter(3);
    const result = applyRule(rule, { a, b }, { s });
    expect([...result.a!.dataSync(), ...result.b!.dataSync()]).toEqual([-3, -3, 9, 9]);
    result.b!.sum().backward();
    expect(s.grad!.dataSync()[0]).toBe(12);
    expect(applyRule(rule, { a, b }, { s: 2 }).a!.shape).toEqual([2]);
  });

  it("refuses missing buffers and scalars", () => {
    const [param, grad, square] = [tensor([1]), tensor([1]), tensor([1])];
    expectCode("BAD_ARGUMENT", () => applyRule(adaptive, { param, grad } as never, { beta: 0, negLr: 0 }));
    expectCode("BAD_ARGUMENT", () => applyRule(adaptive, { param, grad, square }, { beta: 0 } as never));
  });
});
