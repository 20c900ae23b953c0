// Which parameters a step moves, together with which others, and by which numbers.
import { expectCode } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
import { descent, descentBy } from "../../testing/descent";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { f64, first, ones } from "../../testing/single";
import { parameter, tensor } from "../create";
import type { ErrorCode } from "../errors/errors";
import type { Tensor } from "../tensor/tensor";
import { l1, l2 } from "./gradients/regularizer";

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

  it.each<[string, ErrorCode, (param: Tensor, optimizer: Momentum) => void]>([
    ["a gradient was freed", "DISPOSED", ({ grad }) => grad!.dispose()],
    ["a parameter was freed", "DISPOSED", (param) => param.dispose()],
    ["a parameter without a gradient was freed", "DISPOSED", (param) => Object.assign(param, { grad: null }).dispose()],
    ["an option is NaN", "BAD_ARGUMENT", (_, { groups }) => Object.assign(groups[1]!, { lr: Number.NaN })],
    ["an option is infinite", "BAD_ARGUMENT", (_, { groups }) => Object.assign(groups[1]!, { lr: Infinity })],
  ])("nothing where %s", (_, code, change) => {
    const params = [f64(0), f64(0)];
    const groups = params.map((param) => ({ params: param }));
    const optimizer = new Momentum(groups, { lr: 1, momentum: 0 });
    ones(params);
    optimizer.step();
    change(params[1]!, optimizer);
    for (let i = 0; i < 2; i++) expectCode(code, () => optimizer.step());
    expect([first([params[0]!]), optimizer.stateDict().state["0"]!.step]).toEqual([[-1], 1]);
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
    expect([d![0] === a![0], e![0] === d![0]]).toEqual([false, true]);
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

it("a rejected step leaves alone what has no gradient, and so does the next", () => {
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
