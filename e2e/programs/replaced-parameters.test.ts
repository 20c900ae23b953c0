// Parameters that took others' places after the optimizer was made: its steps would silently leave them as they are.
import {
  clipGradNorm,
  clipGradValue,
  compile,
  ExponentialMovingAverage,
  ones,
  parameter,
  type Tensor,
} from "@opt/core";
import { NAdam } from "@opt/nadam";
import { Linear, Module, Sequential } from "@opt/nn";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";

class Tied extends Module {
  readonly a = new Linear(2, 2);
  readonly b = new Linear(2, 2);
  forward(x: Tensor): Tensor {
    return this.b.forward(this.a.forward(x));
  }
}

function training() {
  const [model, x] = [new Tied(), ones([1, 2])];
  const optimizer = new NAdam(model.namedParameters(), { lr: 0.5 });
  const step = () => {
    optimizer.zeroGrad();
    model.forward(x.to(model.a.weight.dtype)).pow(2).mean().backward();
    optimizer.step();
  };
  return { model, x, optimizer, step };
}

describe("a step throws, eager and compiled, after", () => {
  it.each<[string, (model: Tied) => unknown]>([
    ["the model was cast", (model) => model.to("f64")],
    ["it was cast twice", (model) => model.to("f64").to("f32")],
    ["a layer was", (model) => model.b.to("bf16").to("f32")],
    ["its parent was", (model) => new Sequential(model).to("f64")],
    ["a parameter was assigned", ({ a }) => Object.assign(a, { bias: parameter([1, 1]) })],
  ])("%s", (_, change) => {
    const { model, optimizer, step } = training();
    step();
    change(model);
    optimizer.zeroGrad();
    expectCode("BAD_STATE", step);
    expect(step).toThrow("Make the optimizer after model.to(...).");
    expect(compile(step)).toThrow("Make the optimizer after model.to(...).");
  });
});

describe("a step goes on after", () => {
  it.each<[string, (model: Tied, optimizer: NAdam) => unknown]>([
    ["a cast to what it is", (model) => model.to("f32")],
    ["a parameter was taken away", ({ a }) => Object.assign(a, { bias: null })],
    ["weights were tied", ({ a, b }) => Object.assign(a, { weight: b.weight })],
    [
      "a frozen one was cast",
      ({ a }) => {
        for (const parameter of a.parameters()) parameter.requiresGrad = false;
        a.to("f64").to("f32");
      },
    ],
    [
      "a new one was added",
      ({ a }, optimizer) => {
        a.bias = parameter([1, 1]);
        optimizer.addGroup({ params: [["new", a.bias]] });
      },
    ],
    [
      "one was put back",
      ({ a }) => {
        const { bias } = a;
        a.bias = parameter([1, 1]);
        a.bias = bias;
      },
    ],
  ])("%s", (_, change) => {
    const { model, optimizer, step } = training();
    step();
    change(model, optimizer);
    const before = model.b.weight.tolist();
    step();
    expect(model.b.weight.tolist()).not.toEqual(before);
  });
});

describe("clipping and averages of parameters that were listed before", () => {
  const listed = () => {
    const { model, x } = training();
    const params = [...model.parameters()];
    const average = new ExponentialMovingAverage(model.namedTensors());
    average.update();
    const calls = [
      () => clipGradNorm(params, 1).dispose(),
      () => clipGradValue(params, 1),
      () => average.update(),
      () => average.averaged(() => undefined),
    ];
    const backward = () => model.forward(x.to(model.a.weight.dtype)).pow(2).mean().backward();
    return { model, calls, backward };
  };

  it.each<[string, (model: Tied) => unknown]>([
    ["the model was cast", (model) => model.to("f64")],
    ["a layer was", (model) => model.b.to("bf16").to("f32")],
    ["a parameter was assigned", ({ a }) => Object.assign(a, { bias: parameter([1, 1]) })],
  ])("are rejected after %s: they would do nothing", (_, change) => {
    const { model, calls, backward } = listed();
    change(model);
    backward();
    for (const call of calls) expectCode("BAD_STATE", call);
  });

  it.each<[string, (model: Tied) => unknown]>([
    ["a cast to what it is", (model) => model.to("f32")],
    ["weights were tied", ({ a, b }) => Object.assign(a, { weight: b.weight })],
    ["one was put back", ({ a }) => Object.assign(a, { bias: parameter([1, 1]) }, { bias: a.bias })],
  ])("go on after %s", (_, change) => {
    const { model, calls, backward } = listed();
    change(model);
    backward();
    for (const call of calls) call();
  });
});
