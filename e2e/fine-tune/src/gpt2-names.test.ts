/** Names of Hugging Face's GPT-2 and ours. */

import { Generator, init, rand, type Tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { Gpt } from "@opt-e2e/tiny-gpt";
import { expect, it } from "vitest";
import { fromGpt2, sizesOf, toGpt2 } from "./gpt2-names";

await init("js");
const model = () =>
  new Gpt({ tokens: 5, width: 4, length: 3, blocks: 2, heads: 2, gpt2: true, generator: new Generator(1) });
const bits = (state: Record<string, Tensor>) =>
  Object.fromEntries(Object.entries(state).map(([name, tensor]) => [name, [tensor.shape, [...tensor.dataSync()]]]));

it("go over and come back with every bit", () => {
  const state = model().stateDict();
  const theirs = toGpt2(state);
  expect(theirs["transformer.h.1.attn.c_attn.weight"]!.shape).toEqual([4, 12]);
  expect(theirs["transformer.h.0.mlp.c_proj.weight"]!.shape).toEqual([16, 4]);
  expect(Object.keys(theirs)).not.toContain("lm_head.weight");
  expect(bits(fromGpt2(theirs))).toEqual(bits(state));
  expect(sizesOf(fromGpt2(theirs))).toEqual({ tokens: 5, width: 4, length: 3, blocks: 2 });
});

it("need no prefix, and do without old files' masks", () => {
  const theirs = Object.entries(toGpt2(model().stateDict())).map(([name, tensor]) => [name.slice(12), tensor] as const);
  const mask = rand([1, 1, 3, 3]);
  const old = { ...Object.fromEntries(theirs), "h.0.attn.bias": mask, "h.1.attn.masked_bias": mask };
  expect(model().loadStateDict(fromGpt2(old))).toEqual({ missing: [], unexpected: [] });
});

it("of another model are rejected, and so is a part of one", () => {
  expectCode("BAD_STATE", () => fromGpt2({ "model.layers.0.self_attn.q_proj.weight": rand([2, 2]) }));
  expectCode("BAD_STATE", () => fromGpt2({}));
  const { "transformer.ln_f.bias": _, ...part } = toGpt2(model().stateDict());
  expectCode("BAD_STATE", () => model().loadStateDict(fromGpt2(part)));
});
