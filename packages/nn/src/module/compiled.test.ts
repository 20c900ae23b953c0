// Compiled functions follow what is replaced in modules, from the very next call on.
import { compile, Generator, noGrad, onGradient, rand, randn, type Tensor, tidy } from "@opt/core";
import { describe, expect, it } from "vitest";
import { BatchNorm1d, Dropout, Linear, Module, ModuleDict, ModuleList, ReLU } from "../index";

const generator = new Generator(1);
const linear = () => new Linear(2, 2, { generator });

class Doubling extends Module {
  factor = 2;
  readonly bounds = [-10, 10];
  readonly #shift = 1;
  forward(x: Tensor): Tensor {
    return x.mul(this.factor).add(this.#shift).clamp(this.bounds[0]!, this.bounds[1]!);
  }
}

class Net extends Module {
  body = linear();
  head: Module & { forward(x: Tensor): Tensor } = linear();
  norm = new BatchNorm1d(2);
  dropout = new Dropout(0.5, { generator: new Generator(7) });
  doubling = new Doubling();
  blocks = [linear(), linear()];
  list = new ModuleList<Module & { forward(x: Tensor): Tensor }>([linear()]);
  heads = new ModuleDict<Record<string, Linear>>({ a: linear() });
  table = new Map([["a", linear()]]);
  scale: number | undefined = 3;

  /** A method of its own: children are called by it, and not by forward. */
  encode(x: Tensor): Tensor {
    const hidden = this.norm.forward(this.body.forward(x));
    return this.doubling.forward(this.dropout.forward(hidden)).mul(this.scale ?? 1);
  }

  forward(x: Tensor): Tensor {
    let y = this.head.forward(this.encode(x));
    for (const block of this.blocks) y = block.forward(y);
    for (const one of this.list) y = one.forward(y);
    return this.table.get("a")!.forward(this.heads.get("a").forward(y));
  }
}

const changes: [string, (net: Net) => void][] = [
  ["a module in a property", (net) => (net.head = linear())],
  ["another kind of module", (net) => (net.head = new ReLU())],
  ["a parameter", (net) => (net.body.weight = linear().weight)],
  ["a bias that goes", (net) => (net.body.bias = null)],
  ["dropout.p", (net) => Object.assign(net.dropout, { p: 0 })],
  ["the momentum of a batch norm", (net) => Object.assign(net.norm, { momentum: 0 })],
  ["a field of a class of one's own", (net) => (net.doubling.factor = 5)],
  ["an item of a list in a field", (net) => (net.doubling.bounds[1] = 1)],
  ["an item of a list of modules", (net) => (net.blocks[1] = linear())],
  ["a list of modules that grows", (net) => net.blocks.push(linear())],
  ["a ModuleList that grows", (net) => net.list.push(linear())],
  ["an entry of a ModuleDict", (net) => net.heads.set("a", linear())],
  ["an entry of a map", (net) => net.table.set("a", linear())],
  ["a property that is deleted", (net) => delete net.scale],
  ["eval()", (net) => net.eval()],
  ["training of one layer", (net) => (net.dropout.training = false)],
  ["a hook of a layer", (net) => net.body.onForward((_module, _inputs, output) => output.mul(2))],
  ["forward itself", (net) => Object.assign(net.body, { forward: (x: Tensor) => x.mul(4) })],
  ["all parameters, by to()", (net) => net.to("f64").to("f32")],
];

/** The model, the function that is compiled, and numbers that it has computed. */
function modelOf(isCompiled: boolean, call: (net: Net, x: Tensor) => Tensor) {
  generator.loadStateDict(new Generator(1).stateDict());
  const net = new Net();
  const body = (x: Tensor) => noGrad(() => call(net, x));
  const f = isCompiled ? compile(body, { check: "never" }) : (x: Tensor) => tidy(() => body(x));
  let seed = 0;
  const call3 = () => [1, 2, 3].map(() => [...f(randn([3, 2], { generator: new Generator(++seed) })).dataSync()]);
  return { net, call3 };
}

const calls = {
  forward: (net: Net, x: Tensor) => net.forward(x),
  "another method": (net: Net, x: Tensor) => net.head.forward(net.encode(x)),
};

describe.each(Object.entries(calls))("a compiled call of %s", (_, call) => {
  it.each(changes)("follows %s", (_, change) => {
    const seen = [true, false].map((isCompiled) => {
      const { net, call3 } = modelOf(isCompiled, call);
      const before = call3();
      change(net);
      return [before, call3()];
    });
    expect(seen[0]).toEqual(seen[1]);
  });
});

it("follows hooks that come, join others and go", () => {
  const layer = linear();
  const f = compile((x: Tensor) => noGrad(() => layer.forward(x)), { check: "never" });
  const x = rand([1, 2], { generator });
  const isSame = () => expect([...f(x).dataSync()]).toEqual([...layer.forward(x).dataSync()]);
  isSame();
  const removers = [2, 3, 5].map((by) => {
    const remove = layer.onForward((_module, _inputs, output) => output.mul(by));
    isSame();
    return remove;
  });
  for (const remove of [removers[1]!, removers[0]!, removers[2]!]) {
    remove();
    isSame();
  }
});

it("follows freeze(), unfreeze(), requiresGrad and hooks of gradients", () => {
  const net = [linear(), linear()] as const;
  const seen: number[] = [];
  const step = compile(
    (x: Tensor) => {
      net[1].forward(net[0].forward(x)).sum().backward();
      const found = net.map(({ weight, bias }) => [weight.grad !== null, bias!.grad !== null]);
      for (const { weight, bias } of net) weight.grad = bias!.grad = null;
      return found.flat();
    },
    { check: "never" },
  );
  const x = rand([1, 2], { generator });
  expect(step(x)).toEqual([true, true, true, true]);
  net[0].freeze();
  expect(step(x)).toEqual([false, false, true, true]);
  net[1].bias!.requiresGrad = false;
  expect(step(x)).toEqual([false, false, true, false]);
  const remove = onGradient(net[1].weight, () => seen.push(1));
  for (let i = 0; i < 3; i++) step(x);
  remove();
  net[0].weight.requiresGrad = net[0].bias!.requiresGrad = true;
  expect(step(x)).toEqual([true, true, true, false]);
  expect(seen).toEqual([1, 1, 1]);
});

it("replays where only modules change that the function does not call", () => {
  const [layer, other] = [linear(), new Net()];
  let runs = 0;
  const f = compile(
    (x: Tensor) => {
      runs++;
      return noGrad(() => layer.forward(x));
    },
    { check: "never" },
  );
  const x = rand([1, 2], { generator });
  for (let i = 0; i < 5; i++) {
    f(x);
    other.head = linear();
    other.train(i % 2 === 0);
    layer.train(i % 2 === 0); // nobody reads it
  }
  expect(runs).toBe(1);
});
