// What an optimizer hands out is live, and what happens to its parameters is noticed.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Momentum } from "../../../testing/momentum";
import { compile } from "../../compile/compile";
import { parameter, tensor } from "../../create";
import type { Tensor } from "../../tensor/tensor";

const stepped = (optimizer: Momentum, w: Tensor, steps: number) => {
  for (let i = 0; i < steps; i++) {
    w.grad = tensor([1, 2]);
    optimizer.step();
  }
};

it("a state dict's counters are of the same step as its tensors", () => {
  const w = parameter([1, 2]);
  const optimizer = new Momentum([w], { lr: 0.1 });
  stepped(optimizer, w, 1);
  const { state } = optimizer.stateDict();
  stepped(optimizer, w, 2);
  expect(state[0]!.step).toBe(3);
  expect({ ...state[0] }.step).toBe(3);
  const again = new Momentum([parameter([1, 2])]);
  again.loadStateDict(optimizer.stateDict());
  stepped(optimizer, w, 1);
  expect(again.stateDict().state[0]!.step).toBe(3);
});

it("a state dict's counters are of the same step as its tensors after compiled steps, until another state is loaded", () => {
  const w = parameter([1, 2]);
  const optimizer = new Momentum([w], { lr: 0.1 });
  stepped(optimizer, w, 1);
  const { state } = optimizer.stateDict();
  const step = compile(() => optimizer.step());
  for (let i = 0; i < 3; i++) step();
  expect(state[0]!.step).toBe(4);
  const again = new Momentum([parameter([1, 2])]);
  step();
  again.loadStateDict({ groups: optimizer.stateDict().groups, state });
  expect(again.stateDict().state[0]!.step).toBe(5);
  optimizer.loadStateDict(again.stateDict());
  stepped(optimizer, w, 1);
  expect(state[0]!.step).toBe(5);
});

it("a parameter pushed into a group's list is rejected, not ignored", () => {
  const optimizer = new Momentum([parameter([1, 2])]);
  (optimizer.groups[0]!.params as Tensor[]).push(parameter([3]));
  expectCode("BAD_STATE", () => optimizer.step());
});

describe.each(["velocity", "master_param"])("what was computed with %s", (key) => {
  it.each(["eager", "compiled"])("cannot be differentiated after the next step, %s", (how) => {
    const [w, x] = [parameter([1, 2], { dtype: "bf16" }), parameter([3, 4])];
    const optimizer = new Momentum([w]);
    w.grad = tensor([1, 1], { dtype: "bf16" });
    const step = compile(() => optimizer.step());
    for (let i = 0; i < 3; i++) step();
    const y = x.mul(optimizer.stateDict().state[0]![key] as Tensor).sum();
    if (how === "eager") optimizer.step();
    else step();
    expectCode("CHANGED", () => y.backward());
  });
});

describe.each(["velocity", "master_param"])("state %s that was handed out and disposed is rejected by", (key) => {
  const made = () => {
    const [w, v] = [parameter([1, 2], { dtype: "bf16" }), parameter([3, 4], { dtype: "bf16" })];
    const optimizer = new Momentum([w, v]);
    const backward = () => w.add(v).pow(2).sum().backward();
    backward();
    optimizer.step();
    const dispose = () => (optimizer.stateDict().state[1]![key] as Tensor).dispose();
    const watched = () =>
      [w, v].map((x) => [...x.dataSync()]).concat([Object.values(optimizer.stateDict().state).map(({ step }) => step)]);
    return { w, optimizer, backward, dispose, watched };
  };

  it.each(["again", "with a new gradient"])(
    "the next step %s: nothing has changed, and it goes on from a fresh state",
    (gradient) => {
      const { optimizer, backward, dispose, watched } = made();
      if (gradient !== "again") {
        optimizer.zeroGrad();
        backward();
      }
      dispose();
      const before = watched();
      expectCode("DISPOSED", () => optimizer.step());
      expect(watched()).toEqual(before);
      optimizer.dispose();
      optimizer.step();
      expect(watched()[2]).toEqual([1, 1]);
    },
  );

  it("a compiled step", () => {
    const { optimizer, dispose, watched } = made();
    const step = compile(() => optimizer.step());
    for (let i = 0; i < 3; i++) step();
    dispose();
    const before = watched();
    expectCode("DISPOSED", step);
    expect(watched()).toEqual(before);
  });
});
