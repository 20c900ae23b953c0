// Recorded steps notice what a module has become since: other parameters, and other numbers of its own.
import { ones, parameter, type Recording, type Tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import {
  BatchNorm1d,
  Dropout,
  GELU,
  LayerNorm,
  LeakyReLU,
  Linear,
  Module,
  ModuleDict,
  ModuleList,
  ReLU,
  Sequential,
} from "../index";

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

  it("eval(), which says how to go on", () => {
    const layer = new Linear(2, 1);
    const step = recordedForward(layer);
    layer.eval();
    expect(() => step.replay()).toThrow("is false. Call train() before replay(), or record the step again.");
    layer.train();
    step.replay();
    step.dispose();
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
    ["layerNorm.eps was set", new LayerNorm(2), { eps: 1e-3 }],
    ["gelu.approximate was set", new GELU(), { approximate: "tanh" }],
    ["leakyReLU.negativeSlope was set", new LeakyReLU(), { negativeSlope: 0.5 }],
    ["a running mean was assigned", new BatchNorm1d(2), { running_mean: zeros([2]) }],
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

class Net extends Module {
  fc: Module & { forward(x: Tensor): Tensor } = new Linear(2, 2);
  activation: Module & { forward(x: Tensor): Tensor } = new ReLU();
  readonly dict = new ModuleDict({ a: new Linear(2, 2) });
  readonly list = new ModuleList([new Linear(2, 2)]);
  readonly plain: Record<string, Linear> = { a: new Linear(2, 2) };
  readonly layers = [new Linear(2, 2)];
  readonly buffers = new Map([["scale", ones([2])]]);
  readonly biases = new Set([ones([2])]);
  scale = ones([2]);
  factor = 2;
  calls = 0;
  last: Tensor | null = null;

  encode(x: Tensor): Tensor {
    this.calls++;
    let y = this.dict.get("a").forward(this.activation.forward(this.fc.forward(x)));
    for (const layer of [...this.list, ...this.layers, ...Object.values(this.plain)]) y = layer.forward(y);
    for (const bias of this.biases) y = y.add(bias);
    this.last = y;
    return y.mul(this.scale).mul(this.buffers.get("scale")!).mul(this.factor);
  }

  forward(x: Tensor): Tensor {
    return this.encode(x);
  }
}

describe("a replay of a model is refused after it got", () => {
  const layer = () => new Linear(2, 2);
  const rows: [string, (net: Net) => unknown][] = [
    ["another layer", (net) => Object.assign(net, { fc: layer() })],
    ["another activation", (net) => Object.assign(net, { activation: new GELU() })],
    ["another layer in a dict", ({ dict }) => dict.set("a", layer())],
    ["one more in a list", ({ list }) => list.push(layer())],
    ["another in a plain object", ({ plain }) => Object.assign(plain, { a: layer() })],
    ["one more in a plain object", ({ plain }) => Object.assign(plain, { b: layer() })],
    ["another in an array", ({ layers }) => layers.splice(0, 1, layer())],
    ["one more in an array", ({ layers }) => layers.push(layer())],
    ["another buffer", (net) => Object.assign(net, { scale: zeros([2]) })],
    ["another buffer in a map", ({ buffers }) => buffers.set("scale", zeros([2]))],
    ["another in a set", ({ biases }) => biases.clear()],
    ["another number", (net) => Object.assign(net, { factor: 3 })],
    ["a new property", (net) => Object.assign(net, { adapter: layer() })],
  ];
  it.each(rows)("%s", (_, change) => {
    for (const method of ["forward", "encode"] as const) {
      const [net, x] = [new Net(), ones([1, 2])];
      const step = x.device.record(() => net[method](x));
      net.forward(x); // counts, and keeps its result: what the call itself changes does not matter
      step.replay();
      change(net);
      expectCode("BAD_STATE", () => step.replay());
      expect(() => step.replay()).toThrow("Record the step again.");
      step.dispose();
    }
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
