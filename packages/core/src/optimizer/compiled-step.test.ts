// Steps in compiled functions: what they follow, when they are traced again, and what they reject.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { StepLR } from "../schedules";
import type { Tensor } from "../tensor/tensor";
import { l2 } from "./gradients/regularizer";

interface Mixed {
  readonly param: Tensor;
  readonly optimizer: Momentum;
}

function parts() {
  const [a, b] = [parameter([1, 2]), parameter([3])] as [Tensor, Tensor];
  const optimizer = new Momentum([{ params: [a] }, { params: [b], lr: 0.03 }], { lr: 0.05 });
  let runs = 0;
  const body = () => {
    runs++;
    a.pow(2).sum().add(b.pow(2).sum()).backward();
    optimizer.step();
    optimizer.zeroGrad();
  };
  const watched = () => [
    [a, b].map((x) => x.tolist()),
    Object.values(optimizer.stateDict().state).map(({ step, ...tensors }) => [
      step,
      ...Object.values(tensors).map((x) => (x as Tensor).tolist()),
    ]),
  ];
  return { a, b, optimizer, body, watched, runs: () => runs };
}

type Parts = ReturnType<typeof parts>;

/** `change` between compiled calls, beside the same eager steps. Returns how often the compiled body ran after it. */
function changed(change: (p: Parts) => void, before = 6, after = 6): number {
  const [compiled, eager] = [parts(), parts()];
  const step = compile(compiled.body);
  const both = (count: number) => {
    for (let i = 0; i < count; i++) {
      step();
      eager.body();
    }
    expect(compiled.watched()).toEqual(eager.watched());
  };
  both(before);
  const runs = compiled.runs();
  change(compiled);
  change(eager);
  both(after);
  return compiled.runs() - runs;
}

it.each<[string, (p: Parts) => void]>([
  ["a learning rate", ({ optimizer }) => Object.assign(optimizer.groups[0]!, { lr: 0.2 })],
  ["a momentum", ({ optimizer }) => Object.assign(optimizer.groups[1]!, { momentum: 0.5 })],
  ["an option that stays what it was", ({ optimizer }) => Object.assign(optimizer.groups[1]!, { maximize: false })],
  ["a parameter", ({ a }) => a.set([7, 8])],
])("%s that was set is followed by the same trace", (_, change) => {
  expect(changed(change, 6, 1)).toBe(0);
  changed(change);
});

it.each<[string, (p: Parts) => void]>([
  ["maximize", ({ optimizer }) => Object.assign(optimizer.groups[0]!, { maximize: true })],
  ["a limit", ({ optimizer }) => Object.assign(optimizer.groups[0]!, { clip: { norm: 0.5 } })],
  ["a penalty", ({ optimizer }) => Object.assign(optimizer.groups[0]!, { regularizer: l2(0.1) })],
  ["an option with more state", ({ optimizer }) => Object.assign(optimizer.groups[0]!, { averaged: true })],
  ["a loaded state", ({ optimizer }) => optimizer.loadStateDict(optimizer.stateDict())],
  ["a state that was freed", ({ optimizer }) => optimizer.dispose()],
  [
    "a step of one parameter alone",
    ({ a, optimizer }) => {
      a.grad = tensor([1, 1]);
      optimizer.step();
      optimizer.zeroGrad();
    },
  ],
  ["a hook", ({ a, optimizer }) => optimizer.on("afterStep", () => a.set([1, 1]))],
])("%s makes another trace", (_, change) => {
  expect(changed(change)).toBeGreaterThan(0);
});

it("a group that was added is stepped, too", () => {
  const [p, c] = [parts(), parameter([5])];
  const step = compile(() => {
    c.pow(2).sum().backward();
    p.body();
  });
  for (let i = 0; i < 3; i++) step();
  p.optimizer.addGroup({ params: [c], lr: 0.5, momentum: 0 });
  c.grad = null;
  for (let i = 0; i < 4; i++) step();
  expect(c.tolist()).toEqual([0]);
});

it.each(["f32", "bf16"] as const)(
  "steps of %s on gradients from outside equal eager ones, before and between them",
  (dtype) => {
    const [compiled, eager] = [0, 1].map(() => {
      const param = parameter([1, 2], { dtype });
      param.grad = tensor([0.3, -0.7], { dtype });
      return { param, optimizer: new Momentum([param], { lr: 0.05, maximize: true }) };
    }) as [Mixed, Mixed];
    const step = compile(() => compiled.optimizer.step());
    for (let i = 0; i < 12; i++) {
      if (i % 4 === 1) compiled.optimizer.step();
      else step();
      eager.optimizer.step();
      expect(compiled.param.tolist()).toEqual(eager.param.tolist());
    }
    expect(compiled.optimizer.stateDict().state["0"]!.step).toBe(12);
  },
);

it("the optimizer counts for parameters that step together and apart", () => {
  const [compiled, eager] = [parts(), parts()];
  const bodies = [compiled, eager].map(({ a, b, optimizer }) => () => {
    for (const params of [[a], [a, b], [b]]) {
      for (const x of params) x.pow(2).sum().backward();
      optimizer.step();
      optimizer.zeroGrad();
    }
  });
  const step = compile(bodies[0]!);
  for (let i = 0; i < 7; i++) {
    step();
    bodies[1]!();
    expect(compiled.watched()).toEqual(eager.watched());
  }
});

it("the trace stays where parameters that step apart have stepped equally often", () => {
  const make = () => {
    const [a, b] = [parameter([1, 2]), parameter([3])];
    const optimizer = new Momentum([a, b], { lr: 0.05 });
    const step = (...params: Tensor[]) => {
      for (const x of params) x.pow(2).sum().backward();
      optimizer.step();
      optimizer.zeroGrad();
    };
    step(a);
    const watched = () => [a.tolist(), b.tolist(), Object.values(optimizer.stateDict().state).map(({ step }) => step)];
    return { both: () => step(a, b), alone: () => step(b), watched };
  };
  const [compiled, eager] = [make(), make()];
  const both = compile(compiled.both, { check: "always" });
  const alone = compile(compiled.alone, { check: "always" });
  for (let i = 0; i < 5; i++) {
    both();
    eager.both();
    if (i === 2) alone();
    if (i === 2) eager.alone();
    expect(compiled.watched()).toEqual(eager.watched());
  }
  expect(eager.watched()[2]).toEqual([6, 6]);
});

it("a step on two devices is rejected before any parameter steps", () => {
  const params = [parameter([1]), parameter([1], { device: new FakeDevice() })];
  const optimizer = new Momentum(params, { lr: 0.5 });
  for (const param of params) param.grad = tensor([1], { device: param.device });
  optimizer.step();
  expectCode(
    "UNSUPPORTED",
    compile(() => optimizer.step()),
  );
  expect(params.flatMap((param) => [...param.dataSync()])).toEqual([0.5, 0.5]);
});

it("traces of an earlier state are dropped, and what they held is freed", () => {
  const device = new FakeDevice();
  const w = parameter(new Float32Array(1000), { device });
  const optimizer = new Momentum([w]);
  const step = compile(() => {
    w.pow(2).sum().backward();
    optimizer.step();
    optimizer.zeroGrad();
  });
  const bytes = Array.from({ length: 6 }, () => {
    for (let i = 0; i < 3; i++) step();
    optimizer.loadStateDict(optimizer.stateDict());
    return device.memory().bytes;
  });
  expect(bytes.at(-1)).toBe(bytes[1]);
});

it("an option out of range is rejected before anything has changed, until it is set right", () => {
  const [p, other] = [parts(), parts()];
  const step = compile(p.body);
  for (let i = 0; i < 5; i++) step();
  for (let i = 0; i < 6; i++) other.body();
  const before = p.watched();
  p.optimizer.groups[1]!.lr = Number.NaN;
  for (let i = 0; i < 2; i++) expectCode("BAD_ARGUMENT", step);
  expect(p.watched()).toEqual(before);
  p.optimizer.groups[1]!.lr = 0.03;
  step();
  expect(p.watched()).toEqual(other.watched());
});

describe("a compiled function cannot", () => {
  it.each<[string, (p: Parts) => unknown]>([
    ["set an option", ({ optimizer }) => Object.assign(optimizer.groups[0]!, { lr: 1 })],
    ["step a schedule", ({ optimizer }) => new StepLR(optimizer, { stepSize: 1 }).step()],
    ["add a group", ({ optimizer }) => optimizer.addGroup({ params: [parameter([1])] })],
    ["load a state", ({ optimizer }) => optimizer.loadStateDict({ groups: [], state: {} })],
  ])("%s", (_, act) => {
    const p = parts();
    const step = compile(() => {
      act(p);
    });
    expectCode("UNSUPPORTED", step);
  });
});

it("hooks run in each call, around the step, and may set options", () => {
  const [compiled, eager] = [parts(), parts()];
  const calls: string[] = [];
  for (const { optimizer } of [compiled, eager]) {
    let count = 0;
    optimizer.on("beforeStep", ({ groups }) => {
      groups[0]!.lr = 0.01 * ++count;
    });
    optimizer.on("afterStep", () => calls.push(optimizer === compiled.optimizer ? "compiled" : "eager"));
  }
  const step = compile(compiled.body);
  for (let i = 0; i < 6; i++) {
    step();
    eager.body();
  }
  expect(compiled.watched()).toEqual(eager.watched());
  expect(calls).toEqual(Array.from({ length: 6 }, () => ["compiled", "eager"]).flat());
});
