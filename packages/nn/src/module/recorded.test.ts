// Recorded steps notice what a module has become since: other parameters, and other numbers of its own.
import { ones, parameter, type Recording, type Tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { BatchNorm1d, Dropout, Linear, Module, Sequential } from "../index";

const recordedForward = (module: { forward(x: Tensor): Tensor }): Recording<Tensor> => {
  const x = ones([3, 2]);
  return x.device.record(() => module.forward(x));
};

class Listed extends Module {
  readonly weights = [parameter([[1], [2]])];
  forward(x: Tensor): Tensor {
    return x.matmul(this.weights[0]!);
  }
}

describe("a replay is refused after", () => {
  it.each<[string, (layer: Linear) => unknown]>([
    ["a parameter was assigned", (layer) => Object.assign(layer, { weight: parameter([[1, 2]]) })],
    ["one was taken away", (layer) => Object.assign(layer, { bias: null })],
    ["the model was cast", (layer) => layer.to("f64")],
    ["its parent was cast", (layer) => new Sequential(layer).to("bf16")],
  ])("%s, until it is recorded again", (_, change) => {
    const layer = new Linear(2, 1);
    const step = recordedForward(layer);
    step.replay();
    change(layer);
    for (let again = 0; again < 2; again++) expectCode("BAD_STATE", () => step.replay());
    step.dispose();
    if (layer.weight.dtype !== "f32") layer.to("f32");
    const next = recordedForward(layer);
    next.replay();
    next.dispose();
  });

  it("a cast of parameters in lists", () => {
    const module = new Listed();
    const step = recordedForward(module);
    module.to("f64");
    expectCode("BAD_STATE", () => step.replay());
    step.dispose();
  });

  it.each<[string, Module & { forward(x: Tensor): Tensor }, object]>([
    ["dropout.p was set", new Dropout(0.5), { p: 0.1 }],
    ["batchNorm.momentum was set", new BatchNorm1d(2), { momentum: 0.2 }],
    ["batchNorm.eps was set", new BatchNorm1d(2), { eps: 1e-3 }],
    ["the mode was switched", new Dropout(0.5), { training: false }],
  ])("%s, and goes on when it is set back", (_, module, change) => {
    const before = Object.fromEntries(Object.keys(change).map((key) => [key, module[key as keyof Module]]));
    const step = recordedForward(module);
    Object.assign(module, change);
    expectCode("BAD_STATE", () => step.replay());
    Object.assign(module, before);
    step.replay();
    step.dispose();
  });
});

it("a replay goes on where nothing was exchanged: the same parameter assigned, a cast to what it is, another model's change", () => {
  const [layer, other] = [new Linear(2, 1), new Linear(2, 1)];
  const step = recordedForward(layer);
  Object.assign(layer, { weight: layer.weight });
  layer.to("f32");
  other.to("f64");
  step.replay();
  expect(step.result.shape).toEqual([3, 1]);
  step.dispose();
});
