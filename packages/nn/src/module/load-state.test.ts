/** States of other names: the error says how to take them. */
import { type Tensor, tensor, zeros } from "@opt/core";
import { expect, it } from "vitest";
import { Linear } from "../layers/linear";

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
