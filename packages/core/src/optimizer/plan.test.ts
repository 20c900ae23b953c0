// Which parameters a step moves, together with which others, and by which numbers.
import { expectCode } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
import { parameter, tensor } from "../create";
import { add, mul, neg } from "../functions";
import { defineRule, type Rule } from "../rule/rule";
import type { Tensor } from "../tensor/tensor";
import { FakeDevice } from "../testing/fake-backend";
import { Momentum } from "../testing/momentum";
import type { Algorithm, BaseOptions, Counters } from "./algorithm";
import { Optimizer } from "./optimizer";
import { l1, l2 } from "./regularizer";

const first = (params: readonly Tensor[]) => params.map((param) => param.dataSync()[0]);
const ones = (params: readonly Tensor[]) => {
  for (const param of params) param.grad = tensor([1], { dtype: param.dtype, device: param.device });
};
const f64 = (value: number) => parameter([value], { dtype: "f64" });

/** Gradient descent by a rule of one's own, for tests of what rules and counters may be. */
class Descent extends Optimizer<BaseOptions> {
  static next: Partial<Algorithm<BaseOptions>> = {};
  protected override define(): Algorithm<BaseOptions> {
    return {
      name: "Descent",
      defaults: { lr: 1, maximize: false },
      validate() {},
      rule: () => descent("descent", "rate", 1),
      initialCounters: { step: 0 },
      advance: ({ step }) => ({ step: step + 1 }),
      scalars: ({ lr }) => ({ rate: lr }),
      ...Descent.next,
    };
  }
}

function descentBy(algorithm: Partial<Algorithm<BaseOptions>>, params: readonly Tensor[], options = {}): Descent {
  Descent.next = algorithm;
  return new Descent(params, options);
}

function descent(name: string, scalar: string, factor: number): Rule {
  return defineRule({
    name,
    buffers: ["param", "grad"],
    scalars: [scalar],
    update: ({ param, grad }, scalars) => ({ param: add(param, mul(neg(scalars[scalar]!), mul(grad, factor))) }),
  });
}

describe("a step moves", () => {
  it("a parameter whose gradient arrives later, while the others stay in place", () => {
    const params = [f64(0), f64(0)];
    const optimizer = new Momentum(params, { lr: 1, momentum: 0 });
    ones([params[0]!]);
    optimizer.step();
    optimizer.step();
    ones([params[1]!]);
    optimizer.step();
    optimizer.step();
    expect(first(params)).toEqual([-4, -2]);
    expect(optimizer.stateDict().state["1"]!.step).toBe(2);
  });

  it("no longer a parameter whose gradient is gone, while the others stay in place", () => {
    const params = [f64(0), f64(0)];
    const optimizer = new Momentum(params, { lr: 1, momentum: 0 });
    ones(params);
    optimizer.step();
    params[1]!.grad = null;
    optimizer.step();
    expect(first(params)).toEqual([-2, -1]);
  });

  it.each(["f32", "f64", "bf16", "f16"] as const)("by what is in a gradient of %s now, changed in place", (dtype) => {
    const w = parameter([0], { dtype });
    const optimizer = new Momentum([w], { lr: 1, momentum: 0 });
    ones([w]);
    for (const gradient of [1, 2, 4]) {
      w.grad!.set([gradient]);
      optimizer.step();
    }
    expect(first([w])).toEqual([-7]);
  });

  it("by a gradient that replaced another, where nothing else has changed", () => {
    const w = f64(0);
    const optimizer = new Momentum([w], { lr: 1, momentum: 0 });
    for (const gradient of [1, 2, 4]) {
      w.grad = tensor([gradient], { dtype: "f64" });
      optimizer.step();
    }
    expect(first([w])).toEqual([-7]);
  });

  it("nothing once a gradient or a parameter was freed in place", () => {
    const params = [f64(0), f64(0)];
    const optimizer = new Momentum(params, { lr: 1, momentum: 0 });
    ones(params);
    optimizer.step();
    params[1]!.grad!.dispose();
    expectCode("DISPOSED", () => optimizer.step());
    expect([first([params[0]!]), optimizer.stateDict().state["0"]!.step]).toEqual([[-1], 1]);
    params[1]!.dispose();
    expectCode("DISPOSED", () => optimizer.step());
    expect(first([params[0]!])).toEqual([-1]);
  });

  it("parameters of a group added later, from their own first step", () => {
    const [a, b] = [f64(0), f64(0)];
    const optimizer = new Momentum([a], { lr: 1 });
    ones([a]);
    optimizer.step();
    optimizer.addGroup({ params: [b], lr: 2 });
    ones([a, b]);
    optimizer.step();
    const alone = new Momentum([f64(0)], { lr: 2 });
    ones(alone.groups[0]!.params);
    alone.step();
    expect(first([b])).toEqual(first(alone.groups[0]!.params));
    expect(Object.values(optimizer.stateDict().state).map(({ step }) => step)).toEqual([2, 1]);
  });

  it("by options set since the last step, and by the rule that they ask for", () => {
    const w = f64(0);
    const optimizer = new Momentum([w], { lr: 1, momentum: 0 });
    ones([w]);
    optimizer.step();
    optimizer.groups[0]!.lr = 10;
    optimizer.step();
    optimizer.groups[0]!.maximize = true;
    optimizer.step();
    expect(first([w])).toEqual([-1]);
  });

  it("from fresh state after dispose", () => {
    const [w, other] = [f64(0), f64(0)];
    const [optimizer, fresh] = [new Momentum([w]), new Momentum([other])];
    ones([w, other]);
    optimizer.step();
    optimizer.dispose();
    expect(optimizer.stateDict().state).toEqual({});
    w.set([0]);
    for (const each of [optimizer, fresh]) each.step();
    expect(first([w])).toEqual(first([other]));
  });

  it("uphill by a negative rate that a schedule set, as in PyTorch, but not by NaN", () => {
    const w = f64(0);
    const optimizer = new Momentum([w], { momentum: 0 });
    ones([w]);
    optimizer.groups[0]!.lr = -0.5;
    optimizer.step();
    expect(first([w])).toEqual([0.5]);
    const restored = new Momentum([w]);
    restored.loadStateDict(optimizer.stateDict());
    expect(restored.groups[0]!.lr).toBe(-0.5);
    for (const lr of [Number.NaN, "1", undefined]) {
      optimizer.groups[0]!.lr = lr as number;
      expectCode("BAD_ARGUMENT", () => optimizer.step());
    }
    optimizer.groups[0]!.lr = 1;
    optimizer.groups[0]!.maximize = 1 as never;
    expectCode("BAD_ARGUMENT", () => optimizer.step());
    expect(first([w])).toEqual([0.5]);
  });
});

describe("one launch", () => {
  /** The lists of tensors of the rule launches of each step. */
  function lists(device: FakeDevice, optimizer: Momentum, steps: number) {
    const launch = vi.spyOn(device.backend, "launch");
    return Array.from({ length: steps }, () => {
      launch.mockClear();
      optimizer.step();
      return launch.mock.calls.flatMap(([call]) => (call.kind === "rule" ? [call.tensors] : []));
    });
  }

  it("is for parameters of one device and one dtype", () => {
    const devices = [new FakeDevice(), new FakeDevice()];
    const dtypes = ["f32", "f64", "bf16"] as const;
    const params = devices.flatMap((device) => dtypes.map((dtype) => parameter([0], { device, dtype })));
    const optimizer = new Momentum(params, { lr: 1, momentum: 0 });
    ones(params);
    for (let i = 0; i < 2; i++) optimizer.step();
    expect(first(params)).toEqual([-2, -2, -2, -2, -2, -2]);
    for (const { launches } of devices) expect(launches.filter((kind) => kind === "rule").length).toBe(6);
    const states = Object.values(optimizer.stateDict().state).map(({ velocity }) => velocity as Tensor);
    expect(states.map(({ dtype }) => dtype)).toEqual(["f32", "f64", "f32", "f32", "f64", "f32"]);
    expect(states.map(({ device }) => devices.indexOf(device as FakeDevice))).toEqual([0, 0, 0, 1, 1, 1]);
  });

  // Devices keep what they made of a list of tensors as long as they meet the same list.
  it("has the same list of tensors as long as nothing moves", () => {
    const device = new FakeDevice();
    const params = [1, 2].map((value) => parameter([value], { device }));
    const optimizer = new Momentum(params, { regularizer: l2(0.5) });
    ones(params);
    const [a, b, c] = lists(device, optimizer, 3);
    expect([a!.length, b![0] === a![0], c![0] === a![0]]).toEqual([1, true, true]);
    ones([params[1]!]);
    const [d, e] = lists(device, optimizer, 2);
    expect([d![0] === a![0], d![0]![0] === a![0]![0], d![0]![1] === a![0]![1], e![0] === d![0]]).toEqual([
      ...[false, true, false],
      true,
    ]);
  });

  it("has another list where a penalty by function has to be asked again", () => {
    const device = new FakeDevice();
    const w = parameter([1], { device });
    const optimizer = new Momentum([w], { regularizer: () => null });
    ones([w]);
    const [a, b] = lists(device, optimizer, 2);
    expect(b![0]).not.toBe(a![0]);
  });
});

describe("penalties", () => {
  it("of one kind with other coefficients stay apart", () => {
    const params = [1, 2, 3].map((_, i) => parameter([1], { dtype: "f64", name: `w${i}` }));
    const coefficient = (name: string) => Number(name.slice(1)) / 4;
    const optimizer = new Momentum(params, { lr: 1, momentum: 0, regularizer: (name) => l2(coefficient(name)) });
    for (const param of params) param.grad = tensor([0], { dtype: "f64" });
    optimizer.step();
    expect(first(params)).toEqual([1, 0.75, 0.5]);
  });

  it("of one coefficient and other kinds stay apart", () => {
    const params = [f64(4), f64(4)];
    const optimizer = new Momentum(params, {
      lr: 1,
      momentum: 0,
      regularizer: (name) => (name === "0" ? l1 : l2)(0.5),
    });
    for (const param of params) param.grad = tensor([0], { dtype: "f64" });
    optimizer.step();
    expect(first(params)).toEqual([3.5, 2]);
  });

  it("set, changed and taken away between steps hold from the next one on", () => {
    const w = f64(8);
    const optimizer = new Momentum([w], { lr: 1, momentum: 0 });
    w.grad = tensor([0], { dtype: "f64" });
    const values = [l2(0.5), l2(0.25), l1(0.25), l1(0.5), null, undefined].map((regularizer) => {
      optimizer.groups[0]!.regularizer = regularizer;
      optimizer.step();
      return first([w])[0];
    });
    expect(values).toEqual([4, 3, 2.75, 2.25, 2.25, 2.25]);
  });

  it("by function are asked for every parameter before a replay", () => {
    const params = [f64(8), f64(8)];
    const coefficients = [0.5, 0.5];
    const optimizer = new Momentum(params, { lr: 1, momentum: 0, regularizer: (name) => l2(coefficients[+name]!) });
    for (const param of params) param.grad = tensor([0], { dtype: "f64" });
    const recording = params[0]!.device.record(() => optimizer.step());
    recording.replay();
    coefficients[1] = 0.25;
    expectCode("BAD_STATE", () => recording.replay());
    expect(first(params)).toEqual([2, 2]);
  });

  it("fit rules that compute the same by other names of scalars", () => {
    const params = ["rate", "speed"].map((scalar) => {
      const rule = descent("same", scalar, 1);
      const w = f64(1);
      w.grad = tensor([0], { dtype: "f64" });
      descentBy({ rule: () => rule, scalars: ({ lr }) => ({ [scalar]: lr }) }, [w], { regularizer: l2(0.25) }).step();
      return w;
    });
    expect(first(params)).toEqual([0.75, 0.75]);
  });
});

describe("rules", () => {
  it("of one name are still two", () => {
    const device = new FakeDevice();
    const params = [1, 2].map((factor) => {
      const rule = descent("same", "rate", factor);
      const w = parameter([0], { device });
      ones([w]);
      descentBy({ rule: () => rule }, [w]).step();
      return w;
    });
    expect(first(params)).toEqual([-1, -2]);
  });

  it("need all their scalars from the algorithm", () => {
    const w = f64(0);
    ones([w]);
    expectCode("BAD_ARGUMENT", () => descentBy({ scalars: () => ({ lr: 1 }) }, [w]).step());
    expect(first([w])).toEqual([0]);
  });
});

it("a step goes on from the count that is there, on the same gradient: of a replay before, too", () => {
  const w = f64(0);
  const rule = descent("descent", "rate", 1);
  const optimizer = descentBy({ rule: () => rule, scalars: (_, { step }) => ({ rate: 10 ** step }) }, [w]);
  ones([w]);
  const recording = w.device.record(() => optimizer.step());
  for (const step of [() => recording.replay(), () => optimizer.step(), () => recording.replay()]) step();
  expect(first([w])).toEqual([-11110]);
});

it("a refused step leaves alone what has no gradient, and so does the next", () => {
  const params = [f64(0), f64(0)];
  const optimizer = new Momentum(params, { lr: 1, momentum: 0 });
  ones(params);
  optimizer.step();
  params[0]!.grad = null;
  params[1]!.grad!.dispose();
  expectCode("DISPOSED", () => optimizer.step());
  ones([params[1]!]);
  optimizer.step();
  expect(first(params)).toEqual([-1, -2]);
});

it.each<[string, (optimizer: Descent) => void]>([
  ["freed", (optimizer) => optimizer.dispose()],
  ["loaded", (optimizer) => optimizer.loadStateDict(optimizer.stateDict())],
])("a replay refuses counters that were %s, where they are all there is of state", (_, change) => {
  const params = [f64(0), f64(0)];
  const rule = descent("descent", "rate", 1);
  const optimizer = descentBy({ rule: () => rule }, params);
  ones(params);
  const recording = params[0]!.device.record(() => optimizer.step());
  recording.replay();
  change(optimizer);
  expectCode("BAD_STATE", () => recording.replay());
  expect(first(params)).toEqual([-2, -2]);
});

describe("counters", () => {
  /** Its second counter is the product of rates, in float64. */
  const initialCounters = { step: 0, product: 1 };
  const advance = ({ step, product }: Counters): Counters => ({ step: step + 1, product: product! * 0.1 });
  const scalars = (_: BaseOptions, { product }: Counters) => ({ rate: product! });
  const make = (params: readonly Tensor[]) => descentBy({ initialCounters, advance, scalars }, params);

  it("are loaded as they were saved, to the last bit", () => {
    const [straight, resumed] = [f64(0), f64(0)];
    ones([straight, resumed]);
    const [whole, saved, loaded] = [make([straight]), make([resumed]), make([resumed])];
    for (const optimizer of [whole, whole, whole, saved]) optimizer.step();
    loaded.loadStateDict(saved.stateDict());
    for (let i = 0; i < 2; i++) loaded.step();
    expect(first([resumed])).toEqual(first([straight]));
  });

  it("with one step count and other numbers stay apart after a load", () => {
    const params = [f64(0), f64(0)];
    const optimizer = make(params);
    ones(params);
    optimizer.step();
    const { groups, state } = optimizer.stateDict();
    optimizer.loadStateDict({ groups, state: { ...state, "1": { ...state["1"]!, product: 10 } } });
    for (const param of params) param.set([0]);
    optimizer.step();
    expect(first(params)).toEqual([-0.1 * 0.1, -1]);
  });

  it("must be finite numbers to be loaded", () => {
    const w = f64(0);
    const optimizer = make([w]);
    ones([w]);
    optimizer.step();
    for (const product of [Number.NaN, Number.POSITIVE_INFINITY, "1", undefined]) {
      const { groups, state } = optimizer.stateDict();
      const damaged = { groups, state: { "0": { ...state["0"]!, product: product as number } } };
      expectCode("BAD_STATE", () => optimizer.loadStateDict(damaged));
    }
  });
});

describe("options", () => {
  it("that are undefined are left out", () => {
    const optimizer = new Momentum([{ params: f64(0), lr: undefined }], { momentum: undefined } as never);
    expect(optimizer.groups[0]).toMatchObject({ lr: 0.1, momentum: 0.9 });
  });

  it("that are fixed can be neither set nor loaded", () => {
    const fixed = { maximize: false };
    const w = f64(0);
    expectCode("BAD_ARGUMENT", () => descentBy({ fixed }, [w], { maximize: true }));
    const optimizer = descentBy({ fixed }, [w], { maximize: false });
    expectCode("BAD_ARGUMENT", () => optimizer.addGroup({ params: [f64(1)], maximize: true }));
    const { groups, state } = optimizer.stateDict();
    optimizer.loadStateDict({ groups: [{ ...groups[0]!, maximize: true }], state });
    expect(optimizer.groups[0]!.maximize).toBe(false);
  });

  it("names are one to an optimizer, over all groups", () => {
    const optimizer = new Momentum([["w", f64(0)]]);
    expectCode("DUPLICATE", () => optimizer.addGroup({ params: [["w", f64(1)]] }));
    optimizer.addGroup({ params: [["v", f64(1)]] });
    expect(optimizer.groups.map(({ names }) => names)).toEqual([["w"], ["v"]]);
  });
});

it("gradients are zeroed in place where there are any, and `using` frees the state", () => {
  const params = [f64(0), f64(0)];
  const optimizer = new Momentum(params);
  ones([params[0]!]);
  optimizer.step();
  optimizer.zeroGrad({ setToNull: false });
  expect([params[0]!.grad!.dataSync()[0], params[1]!.grad]).toEqual([0, null]);
  const velocity = optimizer.stateDict().state["0"]!.velocity as Tensor;
  optimizer[Symbol.dispose]();
  expect([velocity.isDisposed, optimizer.stateDict().state]).toEqual([true, {}]);
});
