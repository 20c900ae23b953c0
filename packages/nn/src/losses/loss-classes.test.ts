// Losses as modules: their options, tensors among these, and which functions have a class.
import { Generator, ones, randn, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
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
