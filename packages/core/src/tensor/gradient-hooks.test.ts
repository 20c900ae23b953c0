import { describe, expect, it } from "vitest";
import { grad, init, onGradient, parameter, type Tensor, tensor } from "../index";

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
  ])("refuses %s", (_, call, code) => expect(call).toThrow(expect.objectContaining({ code })));

  it("refuses a recorded backward", async () => {
    const device = await init("js");
    const w: Tensor = parameter([1]);
    onGradient(w, () => {});
    const record = () => device.record(() => w.mul(2).sum().backward());
    expect(record).toThrow(expect.objectContaining({ code: "UNSUPPORTED" }));
  });

  it("is called where backward begins at the leaf", () => {
    const w = parameter([1, 2]);
    const seen: unknown[] = [];
    onGradient(w, (leaf) => seen.push(leaf.grad!.tolist()));
    w.backward(tensor([3, 4]));
    grad(w, [w], { gradient: tensor([3, 4]) });
    expect(seen).toEqual([[3, 4]]);
  });

  it("refuses replays of a backward that was recorded before, while the hook is there", async () => {
    const device = await init("js");
    const [w, input] = [parameter([1]), parameter([2])];
    const recording = device.record(() => {
      w.grad = null;
      w.mul(input.detach()).sum().backward();
    });
    const remove = onGradient(w, () => {});
    onGradient(input, () => {}); // gets no gradient there
    expect(() => recording.replay()).toThrow(expect.objectContaining({ code: "BAD_STATE" }));
    remove();
    recording.replay();
    expect(w.grad!.tolist()).toEqual([2]);
    recording.dispose();
  });
});
