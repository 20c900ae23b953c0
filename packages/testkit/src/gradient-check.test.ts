import { applyRule, defineRule, Generator, mul, neg, randn, sub, type Tensor, tensor } from "@opt/core";
import { describe, expect, it } from "vitest";
import { gradCheck } from "./gradient-check";

const normal = (shape: number[], seed: number) => randn(shape, { dtype: "f64", generator: new Generator(seed) });

describe("gradCheck", () => {
  it("accepts right gradients, of several inputs and with broadcasting", async () => {
    await gradCheck((x, w) => x.matmul(w).tanh(), [normal([3, 4], 1), normal([4, 2], 2)]);
    await gradCheck((x, row) => x.mul(row).add(row.exp()), [normal([2, 3], 3), normal([3], 4)]);
  });

  it("works in float64 whatever the inputs' dtype", async () => {
    await gradCheck((x) => x.mul(x).mul(x), [tensor([0.5, -1.25, 3])]);
  });

  it("rejects a wrong gradient and says where", async () => {
    const halfDetached = (x: Tensor) => x.mul(x.detach());
    await expect(gradCheck(halfDetached, [normal([4], 5)])).rejects.toThrow(
      /gradient of input 0, \[4\][\s\S]*4 of 4 words differ/,
    );
  });

  it("rejects a gradient that is wrong in one element of the output alone", async () => {
    const fn = (x: Tensor) => x.mul(x).slice(0, 3).sum().add(x.slice(3, 4).detach().sum());
    await expect(gradCheck(fn, [normal([4], 6)])).rejects.toThrow("1 of 4 words differ");
  });

  it("takes an input without influence as one of gradient 0", async () => {
    await gradCheck((x, _unused) => x.exp(), [normal([3], 7), normal([2], 8)]);
  });

  it("differentiates a rule evaluated on tensors", async () => {
    const sgd = defineRule({
      name: "sgd",
      buffers: ["param", "grad"],
      scalars: ["lr"],
      update: ({ param, grad }, { lr }) => ({ param: sub(param, mul(lr, neg(grad))) }),
    });
    await gradCheck(
      (param, grad) => applyRule(sgd, { param, grad }, { lr: 0.1 }).param!,
      [normal([3], 9), normal([3], 10)],
    );
  });
});
