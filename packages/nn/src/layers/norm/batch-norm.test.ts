import { compile, Generator, noGrad, randn, recompute, type Tensor, tensor, tidy, zeros } from "@opt/core";
import { eachDevice, expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { BatchNorm1d, BatchNorm2d, Linear, Sequential } from "../../index";

describe("BatchNorm", () => {
  it("has PyTorch's names in its state, and trains only weight and bias", () => {
    const model = new Sequential(new Linear(2, 3), new BatchNorm1d(3));
    expect(Object.keys(model.stateDict()).slice(2)).toEqual(
      ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"].map((name) => `1.${name}`),
    );
    expect(model.namedParameters().map(([name]) => name)).toEqual(["0.weight", "0.bias", "1.weight", "1.bias"]);
  });

  it("goes on from its state, statistics included", () => {
    const [from, to] = [new BatchNorm1d(2), new BatchNorm1d(2)];
    from.forward(
      tensor([
        [1, 2],
        [3, 5],
      ]),
    );
    to.loadStateDict(from.stateDict());
    const x = tensor([[1, 1]]);
    expect(to.eval().forward(x).dataSync()).toAgreeWith(from.eval().forward(x).dataSync());
    expect(to.num_batches_tracked!.dataSync()[0]).toBe(1);
  });

  it("averages over all batches in the module's dtype", () => {
    const layer = new BatchNorm1d(1, { momentum: null, dtype: "f64" });
    const batches = [
      [1, 2],
      [3, 5],
      [4, 9],
    ];
    for (const values of batches) layer.forward(tensor(values, { shape: [2, 1], dtype: "f64" }));
    // torch: cumulative averages of the batches' means 1.5, 4, 6.5 and unbiased variances 0.5, 2, 12.5
    expect(layer.running_mean!.dataSync()[0]).toBeCloseTo(4, 14);
    expect(layer.running_var!.dataSync()[0]).toBeCloseTo(5, 14);
  });

  it("leaves nothing behind but its result", () => {
    const [layer, x] = [new BatchNorm2d(2), zeros([2, 2, 3, 3])];
    const { tensors } = x.device.memory();
    const y = noGrad(() => layer.forward(x));
    expect(x.device.memory().tensors).toBe(tensors + 1);
    y.dispose();
  });

  it.each(["f16", "bf16"] as const)("takes %s beside statistics in f32, as torch does under autocast", (dtype) => {
    const layer = new BatchNorm1d(1);
    const y = layer.forward(tensor([[1], [3]], { dtype }));
    expect([y.dtype, ...y.dataSync()]).toEqual([dtype, -1, 1]);
    expect(layer.running_mean!.dataSync()[0]).toBeCloseTo(0.2);
  });

  const rows: [string, () => unknown, string][] = [
    ["one value per channel in training", () => new BatchNorm1d(2).forward(zeros([1, 2])), "BAD_SHAPE"],
    ["other channels", () => new BatchNorm1d(2).forward(zeros([4, 3])), "BAD_SHAPE"],
    ["other axes", () => new BatchNorm2d(2).forward(zeros([4, 2])), "BAD_SHAPE"],
    ["a momentum beyond 1", () => new BatchNorm1d(2, { momentum: 2 }), "BAD_ARGUMENT"],
    ["a misspelt option", () => new BatchNorm1d(2, { track: true } as never), "BAD_ARGUMENT"],
  ];
  it.each(rows)("rejects %s", (_, body, code) => expectCode(code as "BAD_SHAPE", body));

  it("counts a batch once where the layer is recomputed", () => {
    const [layer, plain] = [new BatchNorm1d(1), new BatchNorm1d(1)];
    const x = tensor([[1], [3]], { requiresGrad: true });
    recompute((z) => layer.forward(z), x)
      .pow(3)
      .sum()
      .backward();
    plain.forward(x).pow(3).sum().backward();
    expect(layer.running_mean!.dataSync()).toEqual(plain.running_mean!.dataSync());
    expect(layer.num_batches_tracked!.dataSync()[0]).toBe(1);
    expect(layer.weight!.grad!.dataSync()).toEqual(plain.weight!.grad!.dataSync());
  });

  it("compiled, follows train() and eval()", () => {
    const [layer, plain] = [new BatchNorm1d(1), new BatchNorm1d(1)];
    const step = compile((x: Tensor) => layer.forward(x), { check: "never" });
    for (const isTraining of [true, true, false, false, true, false]) {
      for (const each of [layer, plain]) each.train(isTraining);
      const x = tensor([[1], [3]]);
      expect(step(x).dataSync()).toAgreeWith(plain.forward(x).dataSync());
    }
  });
});

await eachDevice((device) => {
  it("compiled steps follow the statistics of each batch", async () => {
    const [layer, plain] = [new BatchNorm1d(2, { device }), new BatchNorm1d(2, { device })];
    const step = (of: BatchNorm1d) => (x: Tensor) => tidy((): Tensor => of.forward(x).mul(x).sum());
    const compiled = compile(step(layer), { check: "never" });
    for (const factor of [1, 2, -1]) {
      const x = randn([5, 2], { generator: new Generator(2), device }).mul(factor);
      for (const each of [compiled, step(plain)]) each(x);
    }
    for (const name of ["running_mean", "running_var", "num_batches_tracked"] as const) {
      expect(await layer[name]!.data()).toAgreeWith(await plain[name]!.data());
    }
    compiled.dispose();
  });
});
