import { expectCode, Random } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../testing/fake-backend";
import { full, parameter, tensor, zeros } from "./create";
import { tidy } from "./device/scope";
import { where } from "./functions";
import { enableGrad, noGrad } from "./tensor/tape";
import type { Tensor } from "./tensor/tensor";

const gradient = (x: Tensor) => [...x.grad!.dataSync()];

describe("backward", () => {
  it("accumulates into grad over calls and over uses", () => {
    const x = parameter([1, 2]);
    x.mul(x).sum().backward();
    x.mul(3).add(x).sum().backward();
    expect(gradient(x)).toEqual([2 + 4, 4 + 4]);
  });

  it("gives a leaf the gradient of its view without a copy", () => {
    const device = new FakeDevice();
    const x = parameter([1, 2, 3, 4], { device });
    const loss = x.reshape([2, 2]).mul(2).sum();
    device.launches.length = 0;
    loss.backward();
    expect(gradient(x)).toEqual([2, 2, 2, 2]);
    expect(device.launches.filter((kind) => kind === "copy")).toEqual([]);
  });

  it("adds up over diamonds and shared subexpressions, each op once", () => {
    const device = new FakeDevice();
    const x = parameter([0.5], { device });
    let y: Tensor = x;
    for (let i = 0; i < 30; i++) y = y.add(y); // 2^30 paths
    device.launches.length = 0;
    y.sum().backward();
    expect(gradient(x)).toEqual([2 ** 30]);
    expect(device.launches.length).toBeLessThan(100);
  });

  it("goes through graphs deeper than the call stack", () => {
    const x = parameter([1]);
    let y: Tensor = x;
    for (let i = 0; i < 20_000; i++) y = y.add(1);
    y.backward(tensor([1]));
    expect(gradient(x)).toEqual([1]);
    y.dispose();
  });

  it("takes the gradient of what follows, also on a leaf", () => {
    const x = parameter([1, 2]);
    x.mul(2).backward(tensor([10, 100]));
    x.backward(tensor([1, 1]));
    expect(gradient(x)).toEqual([21, 201]);
  });

  it("reaches only what requires a gradient", () => {
    const [x, y, z] = [parameter([1]), tensor([2]), parameter([3])];
    x.mul(y).add(z.detach()).sum().backward();
    expect([gradient(x), y.grad, z.grad]).toEqual([[2], null, null]);
  });

  it("gives back all but the gradients, also what it added up", () => {
    const device = new FakeDevice();
    const x = parameter([0.5], { device });
    const loss = tidy(() => {
      const y = x.mul(2);
      return y.mul(3).add(y).sum();
    });
    loss.backward();
    loss.dispose();
    expect([device.memory().tensors, gradient(x)]).toEqual([2, [8]]);
  });

  it("stops at what decides and does not count: a condition that was computed", () => {
    const [x, w] = [parameter([-1, 2]), parameter([3, 4])];
    where(x.mul(2).gt(0), w, 0).sum().backward();
    expect([x.grad, gradient(w)]).toEqual([null, [0, 1]]);
  });

  it.each<[string, "NO_GRADIENT" | "BAD_SHAPE" | "BAD_DTYPE" | "DEVICE_MISMATCH", (x: Tensor) => unknown]>([
    ["nothing to differentiate", "NO_GRADIENT", () => tensor(1).backward()],
    ["several elements without a gradient", "NO_GRADIENT", (x) => x.mul(2).backward()],
    ["a gradient of another shape", "BAD_SHAPE", (x) => x.mul(2).backward(zeros([3]))],
    ["a gradient of another dtype", "BAD_DTYPE", (x) => x.mul(2).backward(zeros([2], { dtype: "f64" }))],
    ["a gradient of another device", "DEVICE_MISMATCH", (x) => x.backward(zeros([2], { device: new FakeDevice() }))],
  ])("rejects %s", (_, code, body) => {
    const x = parameter([1, 2]);
    expectCode(code, () => body(x));
    expect(x.grad).toBeNull();
  });

  it("rejects a tape that was freed, before any gradient changes", () => {
    const [x, y] = [parameter([2]), parameter([3])];
    const shared = x.mul(x);
    shared.sum().backward();
    expectCode("NO_GRADIENT", () => shared.sum().backward());
    expectCode("NO_GRADIENT", () => y.mul(y).add(shared).sum().backward());
    expect([gradient(x), y.grad]).toEqual([[4], null]);
  });
});

describe("noGrad and detach", () => {
  it("record nothing, also nested, and enableGrad records again", () => {
    const x = parameter([1]);
    const results = noGrad(() => [x.mul(2), noGrad(() => x.mul(2)), enableGrad(() => x.mul(2)), x.mul(2)]);
    expect(results.map((result) => result.requiresGrad)).toEqual([false, false, true, false]);
    expect([x.detach().requiresGrad, x.mul(2).requiresGrad]).toEqual([false, true]);
  });

  it.each([
    ["noGrad", noGrad],
    ["enableGrad", enableGrad],
  ])("%s rejects asynchronous bodies, for it would be over at their first await, and what is no body", (_, run) => {
    expectCode("BAD_ARGUMENT", () => run(async () => 1));
    expectCode("BAD_ARGUMENT", () => run(5 as never));
    expect(parameter([1]).mul(2).requiresGrad).toBe(true);
  });

  it("recording is on again after an error", () => {
    const x = parameter([1]);
    expect(() =>
      noGrad(() => {
        throw new Error("stop");
      }),
    ).toThrow("stop");
    expect(x.mul(2).requiresGrad).toBe(true);
  });

  it("a leaf can be frozen and thawed", () => {
    const x = parameter([1]);
    x.requiresGrad = false;
    expect(x.mul(2).requiresGrad).toBe(false);
    x.requiresGrad = true;
    expect(x.mul(2).requiresGrad).toBe(true);
  });
});

describe("gradients share memory with nothing", () => {
  const step = (run: (a: Tensor, b: Tensor) => Tensor, given?: Tensor) => {
    const [a, b] = [parameter([1, 2]), parameter([3, 4])];
    run(a, b).backward(given ?? full([2], 1));
    const before = gradient(b);
    a.grad!.set([100, 100]);
    expect(gradient(b)).toEqual(before);
    a.clearGradient();
    expect(gradient(b)).toEqual(before);
  };

  it.each<[string, (a: Tensor, b: Tensor) => Tensor]>([
    ["add", (a, b) => a.add(b)],
    [
      "views",
      (a, b) =>
        a
          .reshape([1, 2])
          .add(b.reshape([1, 2]))
          .reshape([2]),
    ],
    ["casts", (a, b) => a.to("f64").add(b).to("f32")],
  ])("of two leaves of one %s", (_, run) => step(run));

  it("nor with the gradient given", () => {
    const given = tensor([1, 1]);
    step((a, b) => a.add(b), given);
    const x = parameter([1, 2]);
    x.backward(given);
    x.grad!.set([9, 9]);
    expect([...given.dataSync()]).toEqual([1, 1]);
  });
});

it("random graphs have the gradient that float64 arithmetic on dual numbers gives", () => {
  const random = new Random(8);
  for (let round = 0; round < 30; round++) {
    const [x0, y0] = [random.uniform() + 0.5, random.uniform() + 0.5];
    const [x, y] = [x0, y0].map((value) => parameter(value, { dtype: "f64" })) as [Tensor, Tensor];
    // Value, derivative by x, derivative by y.
    const nodes: { t: Tensor; dual: [number, number, number] }[] = [
      { t: x, dual: [x0, 1, 0] },
      { t: y, dual: [y0, 0, 1] },
    ];
    for (let i = 0; i < 12; i++) {
      const [p, q] = [random.pick(nodes), random.pick(nodes)];
      const [a, ax, ay] = p.dual;
      const [b, bx, by] = q.dual;
      const kind = random.below(3);
      if (kind === 0) nodes.push({ t: p.t.add(q.t), dual: [a + b, ax + bx, ay + by] });
      else if (kind === 1) nodes.push({ t: p.t.mul(q.t), dual: [a * b, ax * b + a * bx, ay * b + a * by] });
      else
        nodes.push({ t: p.t.tanh(), dual: [Math.tanh(a), ax * (1 - Math.tanh(a) ** 2), ay * (1 - Math.tanh(a) ** 2)] });
    }
    const last = nodes.at(-1)!;
    last.t.backward();
    const expected = last.dual.slice(1);
    const actual = [x, y].map((leaf) => leaf.grad?.dataSync()[0] ?? 0);
    expect(actual).toAgreeWith(expected, { absolute: 1e-12, relative: 1e-10 });
  }
});

it("leaves alone what was frozen after the forward computation", () => {
  const [frozen, trained] = [parameter([3]), parameter([5])];
  const loss = frozen.mul(trained).sum();
  frozen.requiresGrad = false;
  loss.backward();
  expect(frozen.grad).toBeNull();
  expect(gradient(trained)).toEqual([3]);
});
