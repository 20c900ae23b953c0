// In evaluation samples do not mix, nothing of a model changes, and the same input has the same output.
import { concat, Generator, init, manualSeed, noGrad, rand, randn, type Tensor } from "@opt/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as nn from "../index";

await init("js");
manualSeed(3);

const batchFirst = { batchFirst: true } as const;
const images = (count: number) => rand([count, 4, 6, 6]);
const rows = (count: number) => randn([count, 4]);
const places = (count: number) => randn([count, 3, 4]);
const dropout = { dropout: 0.5, numLayers: 2, ...batchFirst };
const trained = <M extends nn.Module & { forward(x: Tensor): Tensor }>(layer: M, x: Tensor): M => {
  layer.forward(x); // running statistics that are not those of the batch
  return layer;
};

/** Each layer that has samples along the first axis, and inputs for it. */
const LAYERS: readonly (readonly [string, () => (x: Tensor) => Tensor, (count: number) => Tensor, () => nn.Module])[] =
  (
    [
      [() => new nn.Linear(4, 3), rows],
      [() => trained(new nn.BatchNorm1d(4), rows(5)), rows],
      [() => trained(new nn.BatchNorm2d(4), images(3)), images],
      [() => trained(new nn.BatchNorm2d(4, { momentum: null }), images(3)), images],
      [() => new nn.GroupNorm(2, 4), images],
      [() => new nn.InstanceNorm2d(4), images],
      [() => trained(new nn.InstanceNorm2d(4, { trackRunningStats: true }), images(3)), images],
      [() => new nn.LayerNorm(4), rows],
      [() => new nn.RMSNorm(4), rows],
      [() => new nn.Conv2d(4, 2, 3, { padding: 1 }), images],
      [() => new nn.ConvTranspose2d(4, 2, 3, { stride: 2 }), images],
      [() => new nn.MaxPool2d(2), images],
      [() => new nn.AvgPool2d(2), images],
      [() => new nn.AdaptiveAvgPool2d(3), images],
      [() => new nn.Upsample({ scaleFactor: 2 }), images],
      [() => new nn.PixelShuffle(2), images],
      [() => new nn.Dropout(0.7), rows],
      [() => new nn.Dropout2d(0.7), images],
      [() => new nn.PReLU(), rows],
      [() => new nn.Softmax(1), rows],
      [
        () => new nn.Sequential(new nn.Linear(4, 4), trained(new nn.BatchNorm1d(4), rows(5)), new nn.Dropout(0.5)),
        rows,
      ],
      [() => first(new nn.LSTM(4, 3, dropout)), places],
      [() => first(new nn.GRU(4, 3, dropout)), places],
      [() => first(new nn.RNN(4, 3, { ...dropout, bidirectional: true })), places],
      [() => new nn.TransformerEncoderLayer(4, 2, { dimFeedforward: 8, dropout: 0.5, ...batchFirst }), places],
    ] as const
  ).map(([make, inputs]) => {
    const layer = make() as nn.Module & { forward(x: Tensor): Tensor };
    return [String(layer).split("\n")[0]!, () => (x: Tensor) => layer.forward(x), inputs, () => layer] as const;
  });

/** A recurrent layer as one of outputs alone. */
function first<M extends nn.LSTM | nn.GRU | nn.RNN>(inner: M): nn.Module & { forward(x: Tensor): Tensor } {
  return new (class First extends nn.Module {
    inner = inner;
    forward(x: Tensor): Tensor {
      return this.inner.forward(x)[0];
    }
  })();
}

describe.each(LAYERS)("%s", (_, make, inputs, layerOf) => {
  it("computes each sample as alone, and keeps its state", () => {
    const forward = make();
    const layer = layerOf().eval();
    const state = () => Object.entries(layer.stateDict()).map(([name, value]) => [name, [...value.dataSync()]]);
    const before = state();
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 5 }), fc.integer({ min: 1, max: 4 }), (count, cut) => {
        const at = Math.min(cut, count - 1);
        const x = inputs(count);
        const [whole, again, parts] = noGrad(() => [
          forward(x),
          forward(x),
          concat([forward(x.slice(0, at)), forward(x.slice(at, count))]),
        ]);
        expect(again.tolist()).toEqual(whole.tolist());
        expect(parts.shape).toEqual(whole.shape);
        const far = whole.sub(parts).abs().max().dataSync()[0]!;
        expect(far).toBeLessThan(1e-5);
      }),
      { numRuns: 6 },
    );
    expect(state()).toEqual(before);
  });
});

it("in training, what a dropout keeps is scaled so that the mean stays, and channels go as a whole", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(99), (p, seed) => {
      const x = rand([3, 4, 2, 2]).add(1);
      const generator = new Generator(seed);
      const all = new nn.Dropout(p, { generator }).forward(x).div(x);
      const isKept = (value: number) => value === 0 || Math.abs(value * (1 - p) - 1) < 1e-5;
      expect([...all.dataSync()].every(isKept)).toBe(true);
      const channels = new nn.Dropout2d(p, { generator }).forward(x).div(x).reshape([12, 4]);
      for (const row of channels.tolist() as number[][]) expect(Math.max(...row) - Math.min(...row)).toBeLessThan(1e-4);
    }),
    { numRuns: 20 },
  );
});
