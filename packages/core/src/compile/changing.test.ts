// Functions that do something else in each call: the check finds them whatever their arguments are, or they say that nothing is replayed.
import { expectCode } from "@opt/testkit";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { compile, dependsOn, init, observed, rand, type Tensor, tensor } from "../index";

await init("js"); // loads the passes

function warnings() {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  return warn.mock.calls;
}

describe("a number that changes in every call", () => {
  it.each([
    ["fresh batches", () => rand([3])],
    [
      "one batch",
      (
        (x) => () =>
          x
      )(tensor([1, 2, 3])),
    ],
  ])("is found with %s by the third call", (_, batch) => {
    let i = 0;
    const f = compile((x: Tensor) => x.mul(1 + i++));
    f(batch());
    f(batch()); // what is made once makes one difference
    expectCode("CHANGED", () => f(batch()));
  });

  it("does not hide behind gradients that are new in each call", () => {
    const w = tensor([1, 2], { requiresGrad: true });
    let i = 0;
    const f = compile(() => {
      const scaled = w.grad!.mul(1 + i++);
      w.grad = null;
      return scaled;
    });
    expectCode("CHANGED", () => {
      for (let call = 0; call < 4; call++) {
        w.mul(2).sum().backward();
        f();
      }
    });
  });
});

describe("a function that is never replayed", () => {
  it("says so once, and what changed", () => {
    const calls = warnings();
    const settings = observed({ scale: 1 });
    const f = compile((x: Tensor) => x.mul(settings.scale));
    for (let i = 0; i < 40; i++) {
      settings.scale = i;
      f(rand([2]));
    }
    expect(calls).toHaveLength(1);
    expect(calls[0]![0]).toMatch(/scale of Object change/);
  });

  it("says so where its older traces are of no more use", () => {
    const calls = warnings();
    let generation = 0;
    const f = compile((x: Tensor) => {
      dependsOn(
        () => generation,
        () => generation,
      );
      return x.mul(2);
    });
    for (let i = 0; i < 40; i++) {
      generation++;
      f(rand([2]));
    }
    expect(calls).toHaveLength(1);
    expect(calls[0]![0]).toMatch(/12 in a row that were not/);
  });

  it("is silent where every call is to be checked, and where traces serve", () => {
    const calls = warnings();
    const always = compile((x: Tensor) => x.mul(2), { check: "always" });
    const replayed = compile((x: Tensor) => x.mul(2));
    for (let i = 0; i < 40; i++) for (const f of [always, replayed]) f(rand([1 + (i % 4)]));
    expect(calls).toEqual([]);
  });
});
