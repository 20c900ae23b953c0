import { expectRemovable } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { compile, grad, onGradient, parameter, type Tensor, tensor } from "../index";

describe("onGradient", () => {
  it("is called once for each backward, when all that adds to the gradient has", () => {
    const w = parameter([3]);
    const seen: unknown[] = [];
    onGradient(w, (leaf) => seen.push(leaf.grad!.tolist()));
    const loss = () => w.mul(w).add(w.mul(2)).sum();
    loss().backward();
    loss().backward();
    expect(seen).toEqual([[8], [16]]);
  });

  it("calls each until it is removed, in whatever order that is", () =>
    expectRemovable(() => {
      const w = parameter([3]);
      return { add: (hook) => onGradient(w, hook), call: () => w.mul(2).sum().backward() };
    }));

  it("is called while gradients of earlier layers are still to come", () => {
    const [first, second] = [parameter([2]), parameter([5])];
    const order: string[] = [];
    onGradient(first, () => order.push("first"));
    onGradient(second, () => order.push(`second, ${first.grad}`));
    first.mul(3).mul(second).sum().backward();
    expect(order).toEqual(["second, null", "first"]);
  });

  it("is not called by grad(), for leaves that are not reached, and after it was removed", () => {
    const [w, other] = [parameter([3]), parameter([1])];
    let calls = 0;
    const removers = [w, other].map((leaf) => onGradient(leaf, () => calls++));
    grad(w.mul(2).sum(), [w]);
    expect(calls).toBe(0);
    for (const remove of removers) remove();
    w.add(other).sum().backward();
    expect(calls).toBe(0);
  });

  it.each<[string, () => unknown, string]>([
    ["what is no tensor", () => onGradient(1 as never, () => {}), "BAD_ARGUMENT"],
    ["a tensor without a gradient", () => onGradient(tensor([1]), () => {}), "BAD_ARGUMENT"],
    ["a result", () => onGradient(parameter([1]).mul(2), () => {}), "BAD_ARGUMENT"],
    ["what is no function", () => onGradient(parameter([1]), undefined as never), "BAD_ARGUMENT"],
  ])("rejects %s", (_, call, code) => expect(call).toThrow(expect.objectContaining({ code })));

  it("is called in each call of a compiled function, from the call after it was added until it is removed", () => {
    const [w, input] = [parameter([1]), parameter([2])];
    const backward = compile((by: Tensor) => {
      w.grad = null;
      w.mul(input.detach()).mul(by).sum().backward();
    });
    const seen: unknown[] = [];
    const call = (by: number) => {
      for (let i = 0; i < 5; i++) backward(tensor([by + i]));
      return seen.splice(0);
    };
    expect(call(1)).toEqual([]);
    const remove = onGradient(w, (leaf) => seen.push(leaf.grad!.tolist()));
    onGradient(input, () => seen.push("gets no gradient there"));
    expect(call(1)).toEqual([[2], [4], [6], [8], [10]]);
    expect(call(3)).toEqual([[6], [8], [10], [12], [14]]);
    remove();
    expect(call(1)).toEqual([]);
    expect(w.grad!.tolist()).toEqual([10]);
  });

  it("is called where backward begins at the leaf", () => {
    const w = parameter([1, 2]);
    const seen: unknown[] = [];
    onGradient(w, (leaf) => seen.push(leaf.grad!.tolist()));
    w.backward(tensor([3, 4]));
    grad(w, [w], { gradient: tensor([3, 4]) });
    expect(seen).toEqual([[3, 4]]);
  });
});
