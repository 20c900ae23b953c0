// weightNorm and spectralNorm: what they hold, what training and compiled functions make of them, and PyTorch's numbers.
import { compile, Generator, grad, manualSeed, noGrad, parameter, rand, type Tensor, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Conv2d, ConvTranspose2d, functionalCall, Linear, LSTM, Sequential } from "../index";
import { removeParametrization } from "./parametrize";
import { spectralNorm } from "./spectral-norm";
import { weightNorm } from "./weight-norm";

const linear = () => new Linear(3, 2, { generator: new Generator(1) });
const x = () => tensor([[1, 2, 3]]);
const near = { absolute: 1e-6, relative: 1e-5 };
const shapesOf = (state: Record<string, Tensor>) =>
  Object.fromEntries(Object.entries(state).map(([name, { shape }]) => [name, shape]));

describe("weightNorm", () => {
  it("has PyTorch's names, and changes no result at first", () => {
    const layer = linear();
    const before = layer.forward(x());
    weightNorm(layer);
    expect(shapesOf(layer.stateDict())).toEqual({
      bias: [2],
      "parametrizations.weight.original0": [2, 1],
      "parametrizations.weight.original1": [2, 3],
    });
    expect(layer.namedParameters().map(([name]) => name)).toEqual(Object.keys(layer.stateDict()));
    expect(layer.forward(x()).dataSync()).toAgreeWith(before.dataSync(), near);
    expect(layer.weight.shape).toEqual([2, 3]);
  });

  it("computes g v / |v| and its gradients", () => {
    const layer = weightNorm(new Linear(2, 1, { bias: false }));
    layer.loadStateDict({
      "parametrizations.weight.original0": tensor([[10]]),
      "parametrizations.weight.original1": tensor([[3, 4]]),
    });
    const y = layer.forward(tensor([[1, 0]]));
    expect(y.dataSync()).toAgreeWith(new Float32Array([6]), near);
    y.sum().backward();
    const gradient = (end: string) =>
      layer
        .namedParameters()
        .find(([name]) => name.endsWith(end))![1]
        .grad!.dataSync();
    expect(gradient("original0")).toAgreeWith(new Float32Array([0.6]), near);
    expect(gradient("original1")).toAgreeWith(new Float32Array([10 * (1 / 5 - 9 / 125), (-10 * 12) / 125]), near);
  });

  it("has second gradients: a weight of one number does not depend on its length", () => {
    const layer = weightNorm(new Linear(1, 1, { bias: false, generator: new Generator(1) }));
    const v = layer.parameters()[1]!;
    const [first] = grad(
      layer
        .forward(tensor([[3]]))
        .square()
        .sum(),
      [v],
      { createGraph: true },
    );
    const [second] = grad(first!.add(v.square()).sum(), [v]);
    expect(second!.dataSync()[0]! / v.dataSync()[0]!).toBeCloseTo(2, 4);
  });

  it.each([
    [1, [1, 3]],
    [-1, [1, 3]],
    [null, []],
  ] as const)("of axis %j has lengths of shape %j", (axis, shape) => {
    const layer = weightNorm(linear(), "weight", { axis });
    expect(layer.stateDict()["parametrizations.weight.original0"]!.shape).toEqual(shape);
    expect(layer.forward(x()).dataSync()).toAgreeWith(linear().forward(x()).dataSync(), near);
  });

  it("takes any parameter, of recurrent layers too", () => {
    const make = () => new LSTM(2, 3, { generator: new Generator(2) });
    const sequence = tensor([[[1, 2]], [[3, 4]]]);
    const layer = weightNorm(weightNorm(make(), "weight_hh_l0"), "weight_ih_l0");
    expect(layer.forward(sequence)[0].dataSync()).toAgreeWith(make().forward(sequence)[0].dataSync(), near);
  });
});

describe("spectralNorm", () => {
  it("has PyTorch's names, and gives a weight of norm 1", () => {
    const layer = spectralNorm(linear(), "weight", { generator: new Generator(3) });
    expect(shapesOf(layer.stateDict())).toEqual({
      bias: [2],
      "parametrizations.weight.0._u": [2],
      "parametrizations.weight.0._v": [3],
      "parametrizations.weight.original": [2, 3],
    });
    expect(layer.namedBuffers().map(([name]) => name)).toHaveLength(2);
    for (let i = 0; i < 30; i++) layer.forward(x());
    const [a, b, c] = [0, 1, 2].map((i) => layer.weight.select(1, i).dataSync()) as [
      Float32Array,
      Float32Array,
      Float32Array,
    ];
    // The larger eigenvalue of the 2 x 2 matrix W W^T.
    const [p, q, r] = [0, 1, 2].map((i) =>
      [a, b, c].reduce((sum, k) => sum + k[i === 2 ? 1 : 0]! * k[i === 0 ? 0 : 1]!, 0),
    ) as [number, number, number];
    expect((p + r) / 2 + Math.hypot((p - r) / 2, q)).toBeCloseTo(1, 5);
  });

  it("trains with PyTorch's numbers", () => {
    const layer = spectralNorm(new Linear(3, 2, { bias: false }), "weight", { nPowerIterations: 2 });
    const state = {
      "parametrizations.weight.original": tensor([
        [1, 2, 3],
        [4, 5, 7],
      ]),
      "parametrizations.weight.0._u": tensor([0.6, 0.8]),
      "parametrizations.weight.0._v": tensor([2 / 3, 1 / 3, 2 / 3]),
    };
    layer.loadStateDict(state);
    const input = tensor([[1, -2, 0.5]]);
    const y = layer.forward(input);
    y.sum().backward();
    const expected = new Float32Array([-0.14732643961906433, -0.24554407596588135]);
    expect(y.dataSync()).toAgreeWith(expected, near);
    const after = layer.stateDict();
    const u = new Float32Array([0.3635779619216919, 0.9315637946128845]);
    const v = new Float32Array([0.401693731546402, 0.5288994312286377, 0.7476012110710144]);
    expect(after["parametrizations.weight.0._u"]!.dataSync()).toAgreeWith(u, near);
    expect(after["parametrizations.weight.0._v"]!.dataSync()).toAgreeWith(v, near);
    const gradient = [0.103853114, -0.189015165, 0.0595971458, 0.112656944, -0.177423403, 0.075982146];
    expect(layer.parameters()[0]!.grad!.dataSync()).toAgreeWith(new Float32Array(gradient), near);
    expect(layer.eval().forward(input).dataSync()).toAgreeWith(expected, near);
  });

  it("moves its vectors in training alone, once for each forward", () => {
    const layer = spectralNorm(new Linear(8, 8, { generator: new Generator(1) }));
    const u = () => [...layer.stateDict()["parametrizations.weight.0._u"]!.dataSync()];
    const input = rand([1, 8]);
    layer.eval().forward(input);
    const before = u();
    layer.forward(input);
    expect(layer.weight.shape).toEqual([8, 8]);
    expect(u()).toEqual(before);
    layer.train().forward(input);
    expect(u()).not.toEqual(before);
  });

  it("has its options", () => {
    const state = (options: object) => spectralNorm(new Conv2d(2, 3, 2), "weight", options).stateDict();
    expect(state({ axis: 1, eps: 1e-6, nPowerIterations: 3 })["parametrizations.weight.0._u"]!.shape).toEqual([2]);
    const up = spectralNorm(new ConvTranspose2d(2, 3, 2)).stateDict();
    expect(up["parametrizations.weight.0._u"]!.shape).toEqual([3]);
    const bias = spectralNorm(linear(), "bias");
    expect(Math.hypot(...bias.bias!.dataSync())).toBeCloseTo(1, 6);
    expect(Object.keys(bias.stateDict())).toEqual(["weight", "parametrizations.bias.original"]);
  });
});

describe("a parametrized layer", () => {
  const layers = { weightNorm: () => weightNorm(linear()), spectralNorm: () => spectralNorm(linear()) };

  it.each(Object.entries(layers))("of %s is trained, compiled as eager", (_, make) => {
    const trained = (compiled: boolean) => {
      manualSeed(4);
      const model = new Sequential(make());
      const step = (input: Tensor) => {
        const weights = model.parameters();
        const loss = model.forward(input).square().sum();
        const gradients = grad(loss, weights);
        noGrad(() => weights.forEach((weight, i) => void weight.set(weight.sub(gradients[i]!.mul(0.1)))));
        return loss;
      };
      const run = compiled ? compile(step) : step;
      const losses = Array.from({ length: 6 }, () => run(x()).dataSync()[0]!);
      return [losses, Object.values(model.stateDict()).map((value) => [...value.dataSync()])];
    };
    const eager = trained(false);
    expect(eager[0]!.at(-1)).not.toBe(eager[0]![0]);
    expect(trained(true)).toEqual(eager);
  });

  it.each(Object.entries(layers))("of %s follows .to(), loads, and is called with other tensors", (_, make) => {
    const layer = make().eval();
    const before = layer.forward(x()).dataSync();
    const wide = make().eval();
    wide.loadStateDict(layer.stateDict());
    wide.to("f64");
    expect(wide.forward(x().to("f64")).dtype).toBe("f64");
    expect(wide.forward(x().to("f64")).to("f32").dataSync()).toAgreeWith(before, near);
    const bias = parameter([5, 6]);
    const moved = functionalCall(layer, { bias }, x()).dataSync();
    expect(moved[0]! - before[0]!).toBeCloseTo(5 - layer.bias!.dataSync()[0]!, 5);
  });

  it.each(Object.entries(layers))("of %s is a plain one again", (_, make) => {
    const layer = make().eval();
    const before = layer.forward(x()).dataSync();
    removeParametrization(layer, "weight");
    expect(Object.keys(layer.stateDict()).sort()).toEqual(["bias", "weight"]);
    expect(layer.forward(x()).dataSync()).toAgreeWith(before, near);
    expect(layer.parameters()).toHaveLength(2);
  });

  it("keeps its hooks", () => {
    const layer = linear();
    const remove = layer.onForward((_layer, _inputs, y) => y.mul(2));
    const twice = layer.forward(x()).dataSync();
    weightNorm(layer);
    expect(layer.forward(x()).dataSync()).toAgreeWith(twice, near);
    remove();
    expect(layer.forward(x()).mul(2).dataSync()).toAgreeWith(twice, near);
    removeParametrization(layer);
    expect(Object.hasOwn(layer, "forward")).toBe(false);
  });
});

it.each<["BAD_ARGUMENT" | "BAD_STATE", string, () => unknown]>([
  ["BAD_ARGUMENT", "a name that is not there", () => weightNorm(linear(), "wieght")],
  ["BAD_ARGUMENT", "an axis that is not there", () => weightNorm(linear(), "weight", { axis: 2 })],
  ["BAD_ARGUMENT", "no iterations", () => spectralNorm(linear(), "weight", { nPowerIterations: 0 })],
  ["BAD_ARGUMENT", "a negative eps", () => spectralNorm(linear(), "weight", { eps: -1 })],
  ["BAD_STATE", "a second one", () => weightNorm(weightNorm(linear()))],
  ["BAD_STATE", "a value in its place", () => Object.assign(weightNorm(linear()), { weight: parameter([1]) })],
  ["BAD_STATE", "removing what is not there", () => removeParametrization(linear())],
])("rejects with %s %s", (code, _, body) => expectCode(code, body));

it.each([true, false])("a weight that is trained (%s) stays so without its parametrization", (isTrained) => {
  const layer = weightNorm(linear());
  for (const part of layer.parameters()) part.requiresGrad = isTrained;
  expect(removeParametrization(layer).weight.requiresGrad).toBe(isTrained);
});
