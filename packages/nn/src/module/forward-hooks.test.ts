import { type Tensor, tensor } from "@opt/core";
import { expectRemovable } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Linear, Module, ReLU, Sequential } from "../index";

const x = () => tensor([[-1, 2]]);

describe("modules", () => {
  it("are this one and all below it, parents first, shared ones once", () => {
    const shared = new ReLU();
    const inner = new Sequential(shared, new Linear(2, 2));
    const model = new Sequential(inner, shared);
    expect(model.modules()).toEqual([model, inner, shared, inner.namedChildren()[1]![1]]);
  });
});

describe("onForward", () => {
  it("calls hooks in order with module, inputs and output, also inside of models, until they are removed", () => {
    const layer = new ReLU();
    const model = new Sequential(layer);
    const calls: unknown[] = [];
    const removes = ["a", "b"].map((name) =>
      layer.onForward((module, [input], output) => {
        calls.push([name, module === layer, input.tolist(), output.tolist()]);
      }),
    );
    model.forward(x());
    removes[0]!();
    removes[0]!();
    model.forward(x());
    removes[1]!();
    model.forward(x());
    const seen = (name: string) => [name, true, [[-1, 2]], [[0, 2]]];
    expect(calls).toEqual([seen("a"), seen("b"), seen("b")]);
    expect(Object.keys(layer)).toEqual(["training"]);
    expect(Object.hasOwn(layer, "forward")).toBe(false);
  });

  it("calls each until it is removed, in whatever order that is", () =>
    expectRemovable(() => {
      const layer = new ReLU();
      return { add: (hook) => layer.onForward(hook), call: () => layer.forward(x()) };
    }));

  it("takes what a hook returns as the output, and hands it to the next one", () => {
    const layer = new ReLU();
    layer.onForward((_module, _inputs, output) => output.add(1));
    layer.onForward((_module, _inputs, output) => output.mul(10));
    expect(layer.forward(x()).tolist()).toEqual([[10, 30]]);
  });

  it("leaves a forward that is a property as it was", () => {
    class Arrow extends Module {
      readonly forward = (x: Tensor): Tensor => x.mul(2);
    }
    const module = new Arrow();
    const { forward } = module;
    const remove = module.onForward((_module, _inputs, output) => output.neg());
    expect(module.forward(x()).tolist()).toEqual([[2, -4]]);
    remove();
    expect(module.forward).toBe(forward);
  });
});
