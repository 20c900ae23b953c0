/** States of other names: the error says how to take them. */
import { ones, type Tensor, tensor, zeros } from "@opt/core";
import { describe, expect, it } from "vitest";
import { Embedding } from "../layers/embedding/embedding";
import { Linear } from "../layers/linear";
import { Module } from "./module";

const state = (prefix: string): Record<string, Tensor> => ({
  [`${prefix}weight`]: tensor([[1, 2]]),
  [`${prefix}bias`]: tensor([3]),
});

it.each([
  ["DistributedDataParallel's", state("module."), "module."],
  ["a file's with more in it", { epoch: zeros([]), ...state("state_dict.") }, "state_dict."],
  ["both", state("state_dict.module."), "state_dict.module."],
  ["those of most names", { "ema.weight": zeros([1, 2]), ...state("model.") }, "model."],
])("names the prefix, strict or not, and its cure works: %s", (_, state, prefix) => {
  const model = new Linear(2, 1);
  for (const strict of [true, false]) {
    const expected = { code: "BAD_STATE", message: expect.stringContaining(`names that begin with "${prefix}": `) };
    expect(() => model.loadStateDict(state, { strict })).toThrow(expect.objectContaining(expected));
  }
  let cure = "";
  try {
    model.loadStateDict(state);
  } catch (error) {
    cure = /model\.loadStateDict\(.*\)/.exec((error as Error).message)![0];
  }
  new Function("model", "state", cure)(model, state);
  expect([...model.weight.dataSync(), ...model.bias!.dataSync()]).toEqual([1, 2, 3]);
});

it.each([
  [{ "fc.scale": zeros([1]) }, /must have a name of the module \(weight, bias\), got fc\.scale\./],
  [{}, /got no name\./],
])("rejects a partial state of which nothing fits", (state, message) => {
  expect(() => new Linear(2, 1).loadStateDict(state, { strict: false })).toThrow(
    expect.objectContaining({ code: "BAD_STATE", message: expect.stringMatching(message) }),
  );
});

describe("tied weights", () => {
  class Tied extends Module {
    readonly embedding = new Embedding(3, 2);
    readonly head = new Linear(2, 3, { bias: false });
    forward(): void {}
  }
  const made = () => {
    const model = new Tied();
    model.head.weight = model.embedding.weight;
    return model;
  };

  it.each(["embedding.weight", "head.weight"])("stored once as %s are loaded, strict or not", (name) => {
    for (const strict of [true, false]) {
      const model = made();
      expect(model.loadStateDict({ [name]: ones([3, 2]) }, { strict })).toEqual({ missing: [], unexpected: [] });
      expect([...model.head.weight.dataSync()]).toEqual([1, 1, 1, 1, 1, 1]);
    }
  });

  it("that are not tied here are missing", () => {
    expect(() => new Tied().loadStateDict({ "embedding.weight": ones([3, 2]) })).toThrow("head.weight is missing");
  });
});

it("another shape is an error of a loose load too, and its cure works", () => {
  const model = new Linear(2, 1);
  const other = { weight: ones([1, 2]), bias: ones([4]) };
  const load = (state: Record<string, Tensor>) => () => model.loadStateDict(state, { strict: false });
  expect(load(other)).toThrow(/bias has shape \[4\] instead of \[1\].*delete these names from the state/);
  const { bias: _, ...rest } = other;
  expect(load(rest)()).toEqual({ missing: ["bias"], unexpected: [] });
  expect([...model.weight.dataSync()]).toEqual([1, 1]);
});
