import { expectCode, gradCheck, seededArray } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { parameter, tensor } from "../create";
import { defineRule } from "../rule/rule";
import { interpretRule } from "../rule/stored";
import { add, div, fma, less, maximum, mul, neg, sqrt, sub, where } from "../rule/symbols";
import type { Tensor } from "../tensor/tensor";
import type { DType } from "../values/dtype";
import { applyRule } from "./apply-rule";

/** The shape of the adaptive methods, with every kind of op. */
const adaptive = defineRule({
  name: "adaptive",
  buffers: ["param", "grad", "square"],
  scalars: ["beta", "negLr"],
  update({ param, grad, square }, { beta, negLr }) {
    const v = maximum(fma(beta, sub(mul(grad, grad), square), square), 0.25);
    const step = where(less(negLr, -10), 0, mul(negLr, grad));
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

  it.each(["f32", "f64", "bf16"] as const)("chooses between whole numbers in the dtype of a launch, %s", (dtype) => {
    const sign = defineRule({
      name: "sign",
      buffers: ["a"],
      scalars: ["third"],
      update: ({ a }, { third }) => ({ a: mul(where(less(a, 0), -1, 1), third) }),
    });
    const [a, arrays] = [tensor([-2, 5], { dtype }), [Float64Array.of(-2, 5)]];
    const third = parameter(1 / 3, { dtype: dtype === "f64" ? "f64" : "f32" });
    interpretRule(sign.program, dtype === "f64" ? "f64" : "f32", arrays, [1 / 3]);
    for (const scalar of [1 / 3, third]) {
      const result = applyRule(sign, { a }, { third: scalar }).a!;
      expect(result.dtype).toBe(dtype);
      expect(result.dataSync()).toAgreeWith(tensor(arrays[0]!, { dtype }).dataSync());
    }
    applyRule(sign, { a }, { third }).a!.sum().backward();
    expect(Number(third.grad)).toBe(0);
  });

  it("computes 16-bit buffers in float32, rounded once, and float32 scalars of f64 buffers in float64", () => {
    const thrice = defineRule({
      name: "thrice",
      buffers: ["a"],
      scalars: ["s", "t"],
      update: ({ a }, { s, t }) => ({ a: sub(add(a, mul(s, t)), a) }),
    });
    const run = (dtype: DType, s: number, t: number) => {
      const scalars = { s: parameter([s]), t: parameter([[t]]) };
      return [...applyRule(thrice, { a: tensor([1], { dtype }) }, scalars).a!.dataSync()];
    };
    expect(run("bf16", 2 ** -5, 2 ** -5)).toEqual([2 ** -10]); // 1 + 2^-10 is no bfloat16
    expect(run("f64", 1 + 2 ** -20, 1 + 2 ** -20)).toEqual([1 + 2 ** -19 + 2 ** -40]); // nor is this square a float32
  });

  it("gives back tensors of its own, and frees what it made on the way", () => {
    const swap = defineRule({
      name: "swap",
      buffers: ["a", "b"],
      scalars: [],
      update: ({ a, b }) => ({ a: b, b: mul(add(a, 1), 2) }),
    });
    const [a, b] = [tensor([1]), tensor([3])];
    const before = a.device.memory().tensors;
    const result = applyRule(swap, { a, b }, {});
    expect(a.device.memory().tensors).toBe(before + 2);
    result.a!.dispose();
    expect([b.dataSync()[0], result.b!.dataSync()[0]]).toEqual([3, 4]);
  });

  it("rejects buffers of several shapes, and scalars of many elements", () => {
    const [param, grad, square] = [tensor([1]), tensor([1]), tensor([1, 2])];
    expectCode("BAD_SHAPE", () => applyRule(adaptive, { param, grad, square }, { beta: 0, negLr: 0 }));
    expectCode("BAD_SHAPE", () => applyRule(adaptive, { param, grad, square: grad }, { beta: 0, negLr: square }));
    expectCode("BAD_ARGUMENT", () => applyRule(adaptive, { param, grad, square: [1] as never }, { beta: 0, negLr: 0 }));
    expectCode("BAD_ARGUMENT", () => applyRule(adaptive, { param, grad, square }, { beta: 0, negLr: "1" as never }));
  });

  it("rejects missing buffers and scalars", () => {
    const [param, grad, square] = [tensor([1]), tensor([1]), tensor([1])];
    expectCode("BAD_ARGUMENT", () => applyRule(adaptive, { param, grad } as never, { beta: 0, negLr: 0 }));
    expectCode("BAD_ARGUMENT", () => applyRule(adaptive, { param, grad, square }, { beta: 0 } as never));
  });
});
