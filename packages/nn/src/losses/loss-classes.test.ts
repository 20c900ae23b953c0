// Losses as modules: their options, tensors among these, and which functions have a class.
import { Generator, ones, randn, type Tensor, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as nn from "../index";

const x = () => randn([2, 3], { generator: new Generator(1) });

describe("a loss class", () => {
  it("is its function, with the options of its constructor", () => {
    const loss = new nn.HuberLoss({ delta: 0.5, reduction: "sum" });
    const target = ones([2, 3]);
    expect(loss.forward(x(), target).tolist()).toEqual(
      nn.huberLoss(x(), target, { delta: 0.5, reduction: "sum" }).tolist(),
    );
  });

  it("has its tensors in the state, under PyTorch's names", () => {
    const loss = new nn.BCEWithLogitsLoss({ weight: ones([3]), posWeight: tensor([1, 2, 3]) });
    expect(Object.keys(loss.stateDict())).toEqual(["weight", "pos_weight"]);
    expect(loss.parameters()).toEqual([]);
    loss.to("f64");
    const y = loss.forward(x().to("f64"), ones([2, 3]).to("f64"));
    expect(y.dtype).toBe("f64");
    const plain = nn.bceWithLogits(x(), ones([2, 3]), { posWeight: tensor([1, 2, 3]) });
    expect(y.dataSync()[0]).toBeCloseTo(plain.dataSync()[0]!, 6);
  });

  it("is part of a model", () => {
    class Net extends nn.Module {
      loss = new nn.CrossEntropyLoss({ weight: tensor([1, 2, 3]) });
      forward = this.loss.forward;
    }
    expect(Object.keys(new Net().stateDict())).toEqual(["loss.weight"]);
  });

  it.each<[string, () => unknown]>([
    ["an unknown option", () => new nn.MSELoss({ reduce: "sum" } as object)],
    ["an unknown reduction", () => new nn.L1Loss({ reduction: "avg" as "sum" })],
    ["a delta of 0", () => new nn.HuberLoss({ delta: 0 })],
    ["a weight that is no tensor", () => new nn.CrossEntropyLoss({ weight: [1, 2] as never })],
  ])("rejects %s where it is made", (_, body) => expectCode("BAD_ARGUMENT", body));
});

it("takes labels of all classes, and what follows -1 for nothing", () => {
  const scores = tensor([0.1, 0.2, 0.4, 0.8]);
  expect(nn.multiLabelMarginLoss(scores, [3, 0, -1, 1]).dataSync()[0]).toBeCloseTo(0.85, 6);
  expectCode("BAD_ARGUMENT", () => nn.multiLabelMarginLoss(scores, [4, 0, -1, 1]));
  expectCode("BAD_SHAPE", () => nn.multiLabelMarginLoss(scores, tensor([1, 0], { dtype: "i32" })));
  expectCode("BAD_SHAPE", () => nn.multiLabelSoftMarginLoss(tensor(1), tensor(1)));
});

it("multiLabelMarginLoss of any labels is its formula", () => {
  const scores = [0.1, 0.2, 0.4, 0.8];
  const margins = (labels: number[]) =>
    labels.flatMap((l) => scores.map((score, c) => (labels.includes(c) ? 0 : Math.max(1 - scores[l]! + score, 0))));
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(3)), fc.nat(3), (labels, behind) => {
      const padded = [...labels, -1, behind, behind, behind].slice(0, 4);
      const expected = margins(labels).reduce((a, b) => a + b, 0) / 4;
      expect(nn.multiLabelMarginLoss(tensor(scores), padded).dataSync()[0]).toBeCloseTo(expected, 5);
    }),
    { numRuns: 30 },
  );
});

/** Each class beside its function, with options that change the loss. */
const p = () => x().sigmoid();
const signs = () => tensor([1, -1]);
const weight = () => tensor([1, 2, 3]);
it.each<[string, () => [Tensor, Tensor]]>([
  ["SmoothL1Loss", () => [new nn.SmoothL1Loss({ beta: 2 }).forward(x(), p()), nn.smoothL1Loss(x(), p(), { beta: 2 })]],
  [
    "CrossEntropyLoss",
    () => [
      new nn.CrossEntropyLoss({ ignoreIndex: 1 }).forward(x(), [0, 1]),
      nn.crossEntropy(x(), [0, 1], { ignoreIndex: 1 }),
    ],
  ],
  [
    "NLLLoss",
    () => {
      const options = { reduction: "sum", axis: 1, ignoreIndex: 1 } as const;
      return [
        new nn.NLLLoss({ ...options, weight: weight() }).forward(x(), [0, 2]),
        nn.nllLoss(x(), [0, 2], { ...options, weight: weight() }),
      ];
    },
  ],
  [
    "KLDivLoss",
    () => [
      new nn.KLDivLoss({ reduction: "batchMean", logTarget: true }).forward(x(), p()),
      nn.klDiv(x(), p(), { reduction: "batchMean", logTarget: true }),
    ],
  ],
  [
    "BCELoss",
    () => [
      new nn.BCELoss({ reduction: "sum", weight: weight() }).forward(p(), p()),
      nn.binaryCrossEntropy(p(), p(), { reduction: "sum", weight: weight() }),
    ],
  ],
  [
    "BCEWithLogitsLoss",
    () => [
      new nn.BCEWithLogitsLoss({ reduction: "sum" }).forward(x(), p()),
      nn.bceWithLogits(x(), p(), { reduction: "sum" }),
    ],
  ],
  [
    "CTCLoss",
    () => {
      const given = [randn([4, 1, 3], { generator: new Generator(2) }).logSoftmax(), [[1]], [4], [1]] as const;
      return [
        new nn.CTCLoss({ blank: 2, reduction: "sum", zeroInfinity: true }).forward(given[0], [[1]], [4], [1]),
        nn.ctcLoss(given[0], [[1]], [4], [1], { blank: 2, reduction: "sum", zeroInfinity: true }),
      ];
    },
  ],
  [
    "GaussianNLLLoss",
    () => [
      new nn.GaussianNLLLoss({ reduction: "sum", full: true, eps: 0.9 }).forward(x(), p(), p()),
      nn.gaussianNllLoss(x(), p(), p(), { reduction: "sum", full: true, eps: 0.9 }),
    ],
  ],
  [
    "PoissonNLLLoss",
    () => [
      new nn.PoissonNLLLoss({ reduction: "sum", logInput: false, full: true, eps: 0.5 }).forward(p(), p()),
      nn.poissonNllLoss(p(), p(), { reduction: "sum", logInput: false, full: true, eps: 0.5 }),
    ],
  ],
  [
    "MarginRankingLoss",
    () => [
      new nn.MarginRankingLoss({ reduction: "sum", margin: 2 }).forward(x(), p(), p()),
      nn.marginRankingLoss(x(), p(), p(), { reduction: "sum", margin: 2 }),
    ],
  ],
  [
    "MultiMarginLoss",
    () => [
      new nn.MultiMarginLoss({ reduction: "sum", p: 2, margin: 2, weight: weight() }).forward(x(), [0, 2]),
      nn.multiMarginLoss(x(), [0, 2], { reduction: "sum", p: 2, margin: 2, weight: weight() }),
    ],
  ],
  [
    "HingeEmbeddingLoss",
    () => [new nn.HingeEmbeddingLoss({ margin: 3 }).forward(x(), p()), nn.hingeEmbeddingLoss(x(), p(), { margin: 3 })],
  ],
  [
    "MultiLabelMarginLoss",
    () => [
      new nn.MultiLabelMarginLoss({ reduction: "sum" }).forward(x(), [
        [0, -1, 1],
        [2, 1, -1],
      ]),
      nn.multiLabelMarginLoss(
        x(),
        [
          [0, -1, 1],
          [2, 1, -1],
        ],
        { reduction: "sum" },
      ),
    ],
  ],
  [
    "MultiLabelSoftMarginLoss",
    () => [
      new nn.MultiLabelSoftMarginLoss({ reduction: "sum" }).forward(x(), p()),
      nn.multiLabelSoftMarginLoss(x(), p(), { reduction: "sum" }),
    ],
  ],
  [
    "TripletMarginLoss",
    () => {
      const options = { reduction: "sum", margin: 2, p: 1, eps: 0.1, swap: true } as const;
      return [
        new nn.TripletMarginLoss({ reduction: "sum", margin: 2, p: 1, eps: 0.1, swap: true }).forward(
          x(),
          p(),
          ones([2, 3]),
        ),
        nn.tripletMarginLoss(x(), p(), ones([2, 3]), options),
      ];
    },
  ],
  [
    "CosineEmbeddingLoss",
    () => [
      new nn.CosineEmbeddingLoss({ reduction: "sum", margin: 0.1 }).forward(x(), p(), signs()),
      nn.cosineEmbeddingLoss(x(), p(), signs(), { reduction: "sum", margin: 0.1 }),
    ],
  ],
])("%s is its function", (_, both) => {
  const [loss, expected] = both();
  expect(loss.tolist()).toEqual(expected.tolist());
});
