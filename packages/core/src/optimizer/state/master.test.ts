// The float32 master copies of 16-bit parameters: they follow whatever overwrites the parameter, and lose no bit of what was not changed.
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { Momentum } from "../../../testing/momentum";
import { compile } from "../../compile/compile";
import { parameter, tensor } from "../../create";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";

type Half = "bf16" | "f16";

const START = [0.3, -1.7, 2.9];

function parts(dtype: Half, start: number[] = START) {
  const w = parameter(start, { dtype, name: "w" });
  return { w, optimizer: new Momentum([w], { lr: 0.013 }) };
}

function train({ w, optimizer }: ReturnType<typeof parts>, steps: number): void {
  for (let i = 0; i < steps; i++) {
    w.grad = tensor([0.11, 0.07, -0.05], { dtype: w.dtype as Half });
    optimizer.step();
  }
}

const master = ({ optimizer }: ReturnType<typeof parts>) =>
  optimizer.stateDict().state.w?.master_param as Tensor | undefined;
const bits = (p: ReturnType<typeof parts>) => [...p.w.dataSync(), ...(master(p)?.dataSync() ?? [])];

describe.each<Half>(["bf16", "f16"])("%s", (dtype) => {
  describe.each<[string, (x: Tensor) => Tensor]>([
    ["the parameter", (x) => x],
    ["a view of it", (x) => x.detach().reshape([1, 3]).reshape([3])],
  ])("set through %s", (_, view) => {
    it("is stepped from what it was set to", () => {
      const p = parts(dtype);
      train(p, 3);
      const velocity = p.optimizer.stateDict().state.w!.velocity as Tensor;
      view(p.w).set([5, 6, 7]);
      expect([...master(p)!.dataSync()]).toEqual([5, 6, 7]);
      velocity.set([0, 0, 0]);
      const fresh = parts(dtype, [5, 6, 7]);
      fresh.optimizer.loadStateDict({
        ...p.optimizer.stateDict(),
        state: { w: { step: 3, velocity: tensor([0, 0, 0]) } },
      });
      train(p, 2);
      train(fresh, 2);
      expect(bits(p)).toEqual(bits(fresh));
    });

    it("keeps the bits of the elements that stay", () => {
      const [p, untouched] = [parts(dtype), parts(dtype)];
      train(p, 3);
      train(untouched, 3);
      view(p.w).set(p.w.clone());
      view(p.w).alias([1], 1).set([9]);
      const [a, , c] = master(untouched)!.dataSync();
      expect([...master(p)!.dataSync()]).toEqual([a, 9, c]);
    });
  });

  it("follows to NaN, infinity and back", () => {
    const p = parts(dtype);
    train(p, 1);
    const special = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const values of [special, [1, 2, 3], special, special.toReversed(), START.map(Math.round)]) {
      p.w.set(values);
      expect([...master(p)!.dataSync()]).toEqual(values);
    }
  });

  it("follows to a zero of the other sign", () => {
    const p = parts(dtype, [0, -0, 0]);
    p.w.grad = tensor([0, 0, 0], { dtype });
    p.optimizer.step();
    for (const zeros of [
      [-0, 0, -0],
      [0, -0, 0],
    ]) {
      p.w.set(zeros);
      expect([...master(p)!.dataSync()]).toEqual(zeros);
    }
  });

  const orders: [string, ("optimizer" | "weights" | "view")[]][] = [
    ["the optimizer, then the weights", ["optimizer", "weights"]],
    ["the weights, then the optimizer", ["weights", "optimizer"]],
    ["the weights through a view", ["optimizer", "view"]],
    ["both twice", ["weights", "optimizer", "optimizer", "view", "weights"]],
  ];
  it.each(orders)("resumes the same bits, loading %s, of what has left the dtype's range, too", (_, order) => {
    const [whole, resumed] = [parts(dtype), parts(dtype, [8, 8, 8])];
    train(whole, 4);
    const largest = dtype === "f16" ? 7e4 : 3.4e38; // rounded, infinity
    master(whole)!.set([largest, -1.7, -largest]);
    train(whole, 1);
    expect([...whole.w.dataSync()].map(Number.isFinite)).toEqual([false, true, false]);
    train(resumed, 2); // with state and a master copy of its own
    const saved = whole.optimizer.stateDict();
    const weights = whole.w.clone();
    const load = {
      optimizer: () => resumed.optimizer.loadStateDict(saved),
      weights: () => resumed.w.set(weights),
      view: () =>
        resumed.w
          .detach()
          .reshape([3, 1])
          .set(weights.reshape([3, 1])),
    };
    for (const part of order) load[part]();
    expect(bits(resumed)).toEqual(bits(whole));
    train(resumed, 3);
    train(whole, 3);
    expect(bits(resumed)).toEqual(bits(whole));
  });

  it("what was loaded without a float32 copy is saved without one", () => {
    const [other, p] = [parts(dtype), parts(dtype)];
    train(other, 1);
    const { groups, state } = other.optimizer.stateDict();
    const { step, velocity } = state.w!;
    p.optimizer.loadStateDict({ groups, state: { w: { step, velocity: velocity! } } });
    expect(Object.keys(p.optimizer.stateDict().state.w!)).toEqual(["step", "velocity"]);
  });

  it.each([0, 1, 2])("trains the parameter that is there, set %i times, whatever master copy was loaded", (times) => {
    const [other, p] = [parts(dtype), parts(dtype, [8, 8, 8])];
    train(other, 4);
    for (let i = 0; i < times; i++) p.w.set([8, 8, 8]);
    p.optimizer.loadStateDict(other.optimizer.stateDict());
    expect([...master(p)!.dataSync()]).toEqual([8, 8, 8]);
  });

  it.each([1, 2])("parameters that share memory are stepped as apart, by %i optimizers", (count) => {
    const block = tensor([...START, ...START], { dtype });
    const views = [block.alias([3]), block.alias([3], 3)];
    for (const view of views) view.requiresGrad = true;
    const groups = count === 1 ? [views] : views.map((view) => [view]);
    const optimizers = groups.map((params) => new Momentum(params, { lr: 0.013 }));
    const apart = parts(dtype);
    train(apart, 4);
    for (let i = 0; i < 4; i++) {
      for (const view of views) view.grad = tensor([0.11, 0.07, -0.05], { dtype });
      for (const optimizer of optimizers) optimizer.step();
    }
    expect([...block.dataSync()]).toEqual([...apart.w.dataSync(), ...apart.w.dataSync()]);
    for (const { master_param } of optimizers.flatMap((each) => Object.values(each.stateDict().state)))
      expect([...(master_param as Tensor).dataSync()]).toEqual([...master(apart)!.dataSync()]);
  });

  type Parts = ReturnType<typeof parts> & { other: Momentum; x: Tensor };
  it.each<[string, (p: Parts) => void, ((p: Parts, i: number) => void)?]>([
    ["steps", (p) => p.optimizer.step()],
    ["steps a parameter that is set between", (p) => p.optimizer.step(), ({ w }, i) => i % 3 === 2 && w.set([i, 2, 3])],
    [
      "sets the parameter before the step",
      ({ w, x, optimizer }) => {
        noGrad(() => w.set(x));
        optimizer.step();
      },
    ],
    [
      "limits the parameter after the step",
      ({ w, optimizer }) => {
        optimizer.step();
        noGrad(() => w.set(w.minimum(2.5)));
      },
    ],
    [
      "limits the parameter after the step, and it is set between",
      ({ w, optimizer }) => {
        optimizer.step();
        noGrad(() => w.set(w.minimum(2.5)));
      },
      ({ w }, i) => i % 3 === 2 && w.set([i, 2, 3]),
    ],
    [
      "steps twice",
      ({ optimizer }) => {
        optimizer.step();
        optimizer.step();
      },
    ],
    [
      "steps by two optimizers",
      ({ optimizer, other }) => {
        optimizer.step();
        other.step();
      },
    ],
  ])("in a function that %s, compiled and eager agree in all bits", (_, body, between) => {
    const [compiled, eager] = [parts(dtype), parts(dtype)].map((p): Parts => {
      p.w.grad = tensor([0.11, 0.07, -0.05], { dtype });
      return { ...p, other: new Momentum([p.w], { lr: 0.017 }), x: tensor([1.1, 2.2, 3.3], { dtype }) };
    }) as [Parts, Parts];
    const step = compile(() => body(compiled));
    for (let i = 0; i < 12; i++) {
      step();
      body(eager);
      between?.(compiled, i);
      between?.(eager, i);
      if (i % 4 === 3) expect(bits(compiled)).toEqual(bits(eager));
    }
  });

  it("a compiled step has one launch while nobody sets the parameter", () => {
    const device = new FakeDevice();
    const w = parameter(START, { dtype, device });
    const optimizer = new Momentum([w]);
    w.grad = tensor([1, 2, 3], { dtype, device });
    const step = compile(() => optimizer.step(), { check: "never" });
    for (let i = 0; i < 2; i++) step();
    const launches = (set: boolean) => {
      device.launches.length = 0;
      if (set) w.set(START);
      step();
      return device.launches.length;
    };
    expect([launches(false), launches(false), launches(true) > 1, launches(false)]).toEqual([1, 1, true, 1]);
  });
});
