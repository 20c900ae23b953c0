// Functions of weights of one's own, and those that draw.
import { Generator, ones, parameter, rand, tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as nn from "../index";

describe("gumbelSoftmax", () => {
  const draw = (options: nn.GumbelSoftmaxOptions) =>
    nn.gumbelSoftmax(zeros([500, 3]).add(tensor([0, Math.log(2), Math.log(5)])), {
      generator: new Generator(3),
      ...options,
    });

  it("draws categories by their probabilities", () => {
    const counts = draw({ hard: true }).sum(0).dataSync();
    expect([...counts].map((count) => Math.round((8 * count) / 500))).toEqual([1, 2, 5]);
  });

  it("is a distribution along any axis, sharper where tau is small", () => {
    expect([...draw({ axis: 0 }).sum(0).dataSync()].map((sum) => Math.round(sum))).toEqual([1, 1, 1]);
    expect(draw({ tau: 0.01 }).max(1).mean().dataSync()[0]).toBeGreaterThan(0.98);
    expect(draw({ hard: true, axis: 0 }).sum(0).tolist()).toEqual([1, 1, 1]);
  });

  it("of hard samples has the gradient of soft ones", () => {
    const gradient = (hard: boolean) => {
      const logits = parameter([[0.5, 1, 2]]);
      const sample = nn.gumbelSoftmax(logits, { hard, generator: new Generator(2) });
      sample
        .mul(tensor([[1, 2, 4]]))
        .sum()
        .backward();
      return logits.grad!.tolist();
    };
    expect(gradient(true)).toEqual(gradient(false));
  });

  it("rejects a tau of 0, and an axis that is not there", () => {
    expectCode("BAD_ARGUMENT", () => draw({ tau: 0 }));
    expectCode("BAD_ARGUMENT", () => draw({ axis: 2 }));
  });
});

describe("dropout", () => {
  it("draws as the layer does", () => {
    const layer = new nn.Dropout(0.25, { generator: new Generator(4) });
    expect(nn.dropout(ones([20]), 0.25, { generator: new Generator(4) }).tolist()).toEqual(
      layer.forward(ones([20])).tolist(),
    );
  });

  it("passes everything outside of training", () => {
    expect(nn.dropout(ones([20]), 0.5, { training: false }).tolist()).toEqual(ones([20]).tolist());
    expectCode("BAD_ARGUMENT", () => nn.dropout(ones([2]), 1.5));
  });
});

it.each<[string, "BAD_SHAPE" | "BAD_ARGUMENT" | "BAD_DTYPE", () => unknown]>([
  ["linear of other features", "BAD_SHAPE", () => nn.linear(rand([2, 3]), rand([2, 4]))],
  ["a bias of another shape", "BAD_SHAPE", () => nn.linear(rand([2, 3]), rand([2, 3]), rand([3]))],
  ["bilinear of two batches", "BAD_SHAPE", () => nn.bilinear(rand([2, 3]), rand([1, 3]), rand([4, 3, 3]))],
  ["a grid of another batch", "BAD_SHAPE", () => nn.gridSample(rand([2, 1, 2, 2]), rand([1, 2, 2, 2]))],
  ["a grid of another dtype", "BAD_DTYPE", () => nn.gridSample(rand([1, 1, 2, 2]), rand([1, 2, 2, 2]).to("f64"))],
  [
    "an unknown mode",
    "BAD_ARGUMENT",
    () => nn.gridSample(rand([1, 1, 2, 2]), rand([1, 2, 2, 2]), { mode: "cubic" as "nearest" }),
  ],
  ["an affine map of volumes for images", "BAD_SHAPE", () => nn.affineGrid(rand([1, 3, 4]), [1, 1, 2, 2])],
  [
    "areas with corners",
    "BAD_ARGUMENT",
    () => nn.interpolate(rand([1, 1, 2, 2]), { size: 2, mode: "area", alignCorners: true }),
  ],
  [
    "a filter for the nearest pixel",
    "BAD_ARGUMENT",
    () => nn.interpolate(rand([1, 1, 2, 2]), { size: 2, antialias: true }),
  ],
  ["cubics of sequences", "BAD_SHAPE", () => nn.interpolate(rand([1, 1, 2]), { size: 2, mode: "bicubic" })],
  ["odd images", "BAD_SHAPE", () => new nn.PixelUnshuffle(2).forward(rand([1, 3, 4]))],
  ["columns that are no windows", "BAD_SHAPE", () => new nn.Fold(4, 2).forward(rand([1, 4, 5]))],
  ["a divisor of 0", "BAD_ARGUMENT", () => new nn.AvgPool2d(2, { divisorOverride: 0 })],
])("rejects %s", (_, code, body) => expectCode(code, body));

it("Unfold and Fold take options, and are each other's adjoint", () => {
  const options = { stride: 2, padding: 1, dilation: 2 };
  const [x, y] = [rand([1, 2, 6, 6]), rand([1, 8, 9])];
  const unfolded = new nn.Unfold(2, options).forward(x);
  const folded = new nn.Fold(6, 2, options).forward(y);
  expect(unfolded.shape).toEqual(y.shape);
  const dot = (a: typeof x, b: typeof x) => a.mul(b).sum().dataSync()[0]!;
  expect(dot(unfolded, y)).toBeCloseTo(dot(x, folded), 4);
});

it("layers draw their first weights and their masks from a generator", () => {
  const generator = () => new Generator(6);
  const twice = (make: () => nn.Module) =>
    [make(), make()].map((layer) => Object.values(layer.stateDict()).map((w) => w.tolist()));
  for (const make of [
    () => new nn.Bilinear(2, 3, 2, { generator: generator() }),
    () => new nn.ConvTranspose3d(2, 2, 2, { generator: generator() }),
  ]) {
    const [a, b] = twice(make);
    expect(a).toEqual(b);
  }
  const dropped = () => new nn.Dropout3d(0.5, { generator: generator() }).forward(ones([4, 4, 1, 1, 1])).tolist();
  expect(dropped()).toEqual(dropped());
});

it("bilinear adds a bias, and Upsample filters", () => {
  const y = nn.bilinear(tensor([1, 2]), tensor([3]), tensor([[[10], [1]]]), tensor([5]));
  expect(y.tolist()).toEqual([41]);
  const layer = new nn.Upsample({ size: [1, 1], mode: "bilinear", antialias: true });
  expect(layer.forward(ones([1, 1, 4, 4])).dataSync()[0]).toBeCloseTo(1, 6);
});
