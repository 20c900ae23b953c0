// Losses of a batch, whatever its cut and order are: sums of parts add up, a mean is the sum by what it counts, and "none" has each sample's own.
import { concat, init, manualSeed, rand, randint, randn, type Tensor, tensor } from "@opt/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as nn from "../index";

await init("js");
manualSeed(5);

type Loss = (output: Tensor, target: Tensor, options?: { reduction?: nn.Reduction }) => Tensor;

const numbers = (count: number): [Tensor, Tensor] => [randn([count, 3]), randn([count, 3])];
const classes = (count: number): [Tensor, Tensor] => [randn([count, 3]), randint(3, [count])];
const LOSSES: readonly (readonly [string, Loss, (count: number) => [Tensor, Tensor]])[] = [
  ["mseLoss", nn.mseLoss, numbers],
  ["l1Loss", nn.l1Loss, numbers],
  ["smoothL1Loss", nn.smoothL1Loss, numbers],
  ["huberLoss", nn.huberLoss, numbers],
  ["crossEntropy", nn.crossEntropy, classes],
  ["nllLoss", nn.nllLoss, classes],
  ["multiMarginLoss", nn.multiMarginLoss, classes],
  ["bceWithLogits", nn.bceWithLogits, (count) => [randn([count, 3]), rand([count, 3])]],
  ["binaryCrossEntropy", nn.binaryCrossEntropy, (count) => [rand([count, 3]), rand([count, 3])]],
  ["klDiv", nn.klDiv, (count) => [randn([count, 3]), rand([count, 3])]],
  ["poissonNllLoss", nn.poissonNllLoss, numbers],
];

const near = (a: number, b: number) => expect(Math.abs(a - b)).toBeLessThan(1e-4 * Math.max(1, Math.abs(b)));

describe.each(LOSSES)("%s", (_, loss, inputs) => {
  it("adds up over parts, in any order", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 6 }), fc.integer({ min: 1, max: 5 }), (count, cut) => {
        const at = Math.min(cut, count - 1);
        const [output, target] = inputs(count);
        const of = (x: Tensor, y: Tensor, reduction: nn.Reduction) => loss(x, y, { reduction });
        const part = (from: number, to: number) =>
          of(output.slice(from, to), target.slice(from, to), "sum").dataSync()[0]!;
        const [sum, mean, none] = (["sum", "mean", "none"] as const).map((each) => of(output, target, each));
        near(part(0, at) + part(at, count), sum!.dataSync()[0]!);
        near(none!.sum().dataSync()[0]!, sum!.dataSync()[0]!);
        near(mean!.dataSync()[0]! * none!.size, sum!.dataSync()[0]!);
        const turned = (x: Tensor) => concat([x.slice(at, count), x.slice(0, at)]);
        near(of(turned(output), turned(target), "sum").dataSync()[0]!, sum!.dataSync()[0]!);
      }),
      { numRuns: 10 },
    );
  });
});

it.each([
  ["crossEntropy", nn.crossEntropy],
  ["nllLoss", nn.nllLoss],
] as const)("%s is that of the labels which count, wherever ignored ones are", (_, loss) => {
  const label = fc.constantFrom(0, 1, 2, -100);
  fc.assert(
    fc.property(fc.array(label, { minLength: 1, maxLength: 6 }), fc.nat(99), (labels, seed) => {
      manualSeed(seed);
      const output = randn([labels.length, 3]);
      const counted = labels.flatMap((value, i) => (value === -100 ? [] : [i]));
      if (counted.length === 0) return;
      const target = tensor(labels, { dtype: "i32" });
      const rows = concat(counted.map((i) => output.slice(i, i + 1)));
      const own = tensor(
        counted.map((i) => labels[i]!),
        { dtype: "i32" },
      );
      for (const reduction of ["mean", "sum"] as const)
        near(loss(output, target, { reduction }).dataSync()[0]!, loss(rows, own, { reduction }).dataSync()[0]!);
      expect(loss(output, target, { reduction: "none" }).tolist()).toEqual(
        labels.map((value) => (value === -100 ? 0 : expect.any(Number))),
      );
    }),
    { numRuns: 15 },
  );
});
