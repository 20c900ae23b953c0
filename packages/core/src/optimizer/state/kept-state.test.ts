/** State that the present options do not ask for: what momentum and maxima were before they were switched off. */
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Momentum } from "../../../testing/momentum";
import { parameter, randn, tensor } from "../../create";
import { Generator } from "../../random/generator";
import type { Tensor } from "../../tensor/tensor";
import type { DType } from "../../values/dtype";
import type { GroupOptions } from "../algorithm";
import { enableQ8 } from "./packed-state";
import type { OptimizerState } from "./state-dict";

enableQ8();

const SIZE = 4096;

function build(dtype: DType, options: GroupOptions) {
  const w = parameter(new Float64Array(SIZE).fill(1), { dtype, name: "w" });
  const optimizer = new Momentum([w], { lr: 0.01, averaged: true, ...options });
  const run = (from: number, to: number) => {
    for (let step = from; step < to; step++) {
      w.grad = randn([SIZE], { generator: new Generator(step) }).to(dtype);
      optimizer.step();
    }
  };
  return { w, optimizer, run };
}

const bytesOf = (x: unknown) => [...(x as Tensor).bytesSync()];

describe.each<[DType, GroupOptions]>([
  ["f32", {}],
  ["f64", {}],
  ["bf16", {}],
  ["f32", { stateDType: "bf16" }],
  ["f32", { stateDType: "q8" }],
])("of %s with %j", (dtype, options) => {
  it("is saved and loaded as it is, and goes on when the option is set again", () => {
    const [straight, resumed] = [build(dtype, options), build(dtype, options)];
    straight.run(0, 2);
    straight.optimizer.groups[0]!.averaged = false;
    straight.run(2, 4);
    resumed.optimizer.loadStateDict(straight.optimizer.stateDict());
    resumed.w.set(straight.w);
    expect(resumed.optimizer.groups[0]!.averaged).toBe(false);
    const both = [straight, resumed];
    const averages = () => both.map(({ optimizer }) => bytesOf(optimizer.stateDict().state.w!.grad_avg));
    for (const one of both) one.run(4, 5);
    expect(averages()[1]).toEqual(averages()[0]);
    for (const { optimizer } of both) optimizer.groups[0]!.averaged = true;
    // In 8 bits what was not asked for is kept in float32 from then on.
    for (const one of both) one.run(5, options.stateDType === "q8" ? 5 : 7);
    expect(averages()[1]).toEqual(averages()[0]);
    expect(bytesOf(resumed.w)).toEqual(bytesOf(straight.w));
  });
});

it("of another shape is left out", () => {
  const { optimizer, run } = build("f32", {});
  run(0, 1);
  const { groups, state } = optimizer.stateDict();
  optimizer.loadStateDict({ groups, state: { w: { ...state.w!, other: tensor([1]) } } });
  expect(Object.keys(optimizer.stateDict().state.w!)).toEqual(["step", "velocity", "grad_avg"]);
});

it.each([
  ["a Map of states", ({ groups, state }: OptimizerState) => ({ groups, state: new Map(Object.entries(state)) })],
  ["a list of states", ({ groups, state }: OptimizerState) => ({ groups, state: Object.values(state) })],
])("%s, in which no name is found, is rejected", (_, other) => {
  const { optimizer, run } = build("f32", {});
  run(0, 1);
  expectCode("BAD_STATE", () => optimizer.loadStateDict(other(optimizer.stateDict()) as never));
  expect(optimizer.stateDict().state.w!.step).toBe(1);
});
