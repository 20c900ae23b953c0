/** Lookahead, SAM and scheduleFree: optax's and NumPy's float64 answers, resumed, compiled, with a scaler, and what they reject. */
import { readFileSync } from "node:fs";
import { expectCode } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
import { Descent } from "../../testing/descent";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import "../index";
import { GradScaler } from "../loss-scaling/scaler";
import type { OptimizerState } from "../optimizer/state/state-dict";
import type { Tensor } from "../tensor/tensor";
import { combine } from "./combine";
import { Lookahead } from "./lookahead";
import { SAM } from "./sam";
import { scheduleFree } from "./schedule-free";

interface Answer {
  readonly options: object;
  readonly trace: readonly number[][];
  readonly x: readonly number[][];
  readonly y: readonly number[][];
}
const answers: Readonly<Record<"lookahead" | "sam" | "scheduleFree", Answer[]>> = JSON.parse(
  readFileSync(new URL("../../testing/goldens/wrappers.json", import.meta.url), "utf8"),
);

/** The problem of testing/wrappers/judge.py. */
function problem(dtype: "f32" | "f64" = "f64") {
  const w = parameter([0.5, -1.25, 2, 0.0625], { dtype, name: "w" });
  const [scale, shift] = [tensor([1, 0.5, 0.25, 3], { dtype }), tensor([0.1, -0.2, 0.3, -0.4], { dtype })];
  const closure = () => {
    w.clearGradient();
    const loss = w.pow(4).div(4).mul(scale).add(w.mul(shift)).sum();
    loss.backward();
    return loss;
  };
  return { w, closure };
}

/** The largest difference, relative to numbers above 1. */
const difference = (w: Tensor, expected: readonly number[]) =>
  Math.max(...[...w.dataSync()].map((x, i) => Math.abs(x - expected[i]!) / Math.max(1, Math.abs(expected[i]!))));

const BOUND = 1e-10;

it.each(answers.lookahead)("Lookahead $options is optax's", ({ options, trace }) => {
  const { w, closure } = problem();
  const optimizer = new Lookahead(new Descent([w], { lr: 0.1 }), options);
  for (const expected of trace) {
    optimizer.step(closure);
    expect(difference(w, expected)).toBeLessThan(BOUND);
  }
});

it.each(answers.sam)("SAM $options has the numbers of its formula", ({ options, trace }) => {
  const { w, closure } = problem();
  const optimizer = new SAM(new Descent([w], { lr: 0.1 }), options);
  for (const expected of trace) {
    optimizer.step(closure);
    expect(difference(w, expected)).toBeLessThan(BOUND);
  }
});

it.each(answers.scheduleFree)("scheduleFree $options is optax's, and so is its average", ({ options, x, y }) => {
  const { w, closure } = problem();
  const optimizer = scheduleFree(new Descent([w], { lr: 0.1 }), options);
  for (const [i, expected] of y.entries()) {
    optimizer.step(closure);
    expect(difference(w, expected)).toBeLessThan(BOUND);
    optimizer.eval();
    expect(difference(w, x[i]!)).toBeLessThan(BOUND);
    expect(optimizer.training).toBe(false);
    expectCode("BAD_STATE", () => optimizer.step());
    optimizer.train();
    expect(difference(w, expected)).toBeLessThan(BOUND);
  }
});

const WRAPPERS = {
  Lookahead: (w: Tensor) => new Lookahead(new Momentum([w], { lr: 0.05, momentum: 0.5 }), { k: 3 }),
  SAM: (w: Tensor) => new SAM(new Momentum([w], { lr: 0.05, momentum: 0.5 })),
  scheduleFree: (w: Tensor) => scheduleFree(new Momentum([w], { lr: 0.05, momentum: 0.5 })),
};

describe.each(Object.entries(WRAPPERS))("%s", (_, wrap) => {
  const start = () => {
    const p = problem("f32");
    const optimizer = wrap(p.w);
    const step = () => optimizer.step(p.closure);
    const run = (count: number, body = step as () => unknown) => {
      for (let i = 0; i < count; i++) body();
    };
    return { ...p, optimizer, step, run, words: () => [...p.w.dataSync()] };
  };

  it.each([1, 4, 6])("resumes after %d steps from its state dict", (at) => {
    const [whole, first, second] = [start(), start(), start()];
    whole.run(9);
    first.run(at);
    second.w.set(first.w.detach());
    const { groups, state } = first.optimizer.stateDict();
    second.optimizer.loadStateDict({ groups: JSON.parse(JSON.stringify(groups)), state });
    second.run(9 - at);
    expect(second.words()).toEqual(whole.words());
    expect(second.words()).not.toEqual([...problem("f32").w.dataSync()]);
  });

  it("is compiled, with a learning rate that moves", () => {
    const [eager, compiled] = [start(), start()];
    const body = compile(() => {
      compiled.optimizer.step(compiled.closure);
    });
    for (let i = 0; i < 9; i++) {
      for (const { optimizer } of [eager, compiled]) optimizer.groups[0]!.lr = 0.05 / (1 + (i >> 2));
      eager.step();
      body();
      expect(compiled.words(), `step ${i}`).toEqual(eager.words());
    }
  });

  it("a step that throws changes nothing", () => {
    const one = start();
    one.run(2);
    const before = one.words();
    one.optimizer.groups[0]!.momentum = -1;
    expectCode("BAD_ARGUMENT", () => one.step());
    expect(one.words()).toEqual(before);
    one.optimizer.groups[0]!.momentum = 0.5;
    const other = start();
    other.run(5);
    one.run(3);
    expect(one.words()).toEqual(other.words());
  });

  it("starts afresh once disposed", () => {
    const one = start();
    one.run(2);
    one.optimizer.dispose();
    expect(one.optimizer.stateDict().state).toEqual({});
    one.run(1);
  });

  it("rejects 16-bit parameters", () => {
    expectCode("UNSUPPORTED", () => wrap(parameter([1], { dtype: "bf16" })));
  });
});

it.each([
  ["Lookahead", WRAPPERS.Lookahead],
  ["scheduleFree", WRAPPERS.scheduleFree],
] as const)("%s skips what a scaler skips, eager and compiled", (_, wrap) => {
  const runs = [false, true, false].map((isCompiled, run) => {
    const { w } = problem("f32");
    const by = tensor([1, 2, 3, 4]);
    const optimizer = wrap(w);
    const scaler = new GradScaler({ initScale: 1024 });
    const body = () => {
      optimizer.zeroGrad();
      scaler.scale(w.mul(by).sum()).backward();
      scaler.step(optimizer);
      scaler.update();
    };
    const step = isCompiled ? compile(body) : body;
    for (let i = 0; i < 10; i++) {
      const overflows = i === 2 || i === 5;
      if (overflows && run === 2) continue;
      by.set(overflows ? [Number.POSITIVE_INFINITY, 2, 3, 4] : [1, 2, 3, 4]);
      step();
    }
    return [...w.dataSync()];
  });
  expect(runs[0]).toEqual(runs[2]);
  expect(runs[1]).toEqual(runs[2]);
});

it.each([
  ["Lookahead", WRAPPERS.Lookahead],
  ["scheduleFree", WRAPPERS.scheduleFree],
] as const)("%s has no state where every step was skipped, after loading as well", (_, wrap) => {
  const { w } = problem("f32");
  const optimizer = wrap(w);
  optimizer.loadStateDict(optimizer.stateDict());
  const scaler = new GradScaler({ initScale: 1024 });
  scaler.scale(w.mul(tensor([Number.POSITIVE_INFINITY, 2, 3, 4])).sum()).backward();
  scaler.step(optimizer);
  scaler.update();
  expect(optimizer.stateDict().state).toEqual({});
});

it("SAM gives the parameters back if the second closure throws", () => {
  const { w, closure } = problem();
  const optimizer = new SAM(new Descent([w], { lr: 0.1 }));
  const before = [...w.dataSync()];
  let calls = 0;
  const failing = () => {
    if (++calls === 2) throw new RangeError("in closure");
    return closure();
  };
  expect(() => optimizer.step(failing)).toThrow(RangeError);
  expect([...w.dataSync()]).toEqual(before);
});

it.each(Object.entries(WRAPPERS))("%s leaves everything as it was if what it wraps rejects a gradient", (_, wrap) => {
  const [whole, failing] = [problem(), problem()];
  const [one, other] = [wrap(whole.w), wrap(failing.w)];
  for (let step = 0; step < 4; step++) {
    one.step(whole.closure);
    const before = failing.w.tolist();
    const rejected = vi
      .spyOn((other as unknown as { parts: Lookahead<never>[] }).parts[0]!, "planned")
      .mockImplementation(() => {
        throw new RangeError("a gradient");
      });
    expect(() => other.step(failing.closure)).toThrow(RangeError);
    rejected.mockRestore();
    expect(failing.w.tolist()).toEqual(before);
    other.step(failing.closure);
    expect(failing.w.tolist()).toEqual(whole.w.tolist());
  }
});

it.each([
  ["Lookahead", (base: Descent) => new Lookahead(base)],
  ["scheduleFree", (base: Descent) => scheduleFree(base)],
] as const)("%s throws at a second step in one compiled call", (_, wrap) => {
  const { w, closure } = problem();
  const optimizer = wrap(new Descent([w], { lr: 0.1 }));
  const both = compile(() => {
    optimizer.step(closure);
    optimizer.step(closure);
  });
  expectCode("UNSUPPORTED", both);
});

it("SAM waits for a closure that waits, with the words of one that does not", async () => {
  const [now, later] = [problem(), problem()];
  const one = new SAM(new Momentum([now.w], { lr: 0.1, momentum: 0.5 }), { rho: 0.5 });
  const other = new SAM(new Momentum([later.w], { lr: 0.1, momentum: 0.5 }), { rho: 0.5 });
  const closure = async () => {
    await undefined;
    return later.closure();
  };
  for (let step = 0; step < 3; step++) {
    const loss = one.step(now.closure);
    const running = other.step(closure);
    expectCode("BAD_STATE", () => other.step(closure));
    expect((await running).tolist()).toBe(loss.tolist());
    expect(later.w.tolist()).toEqual(now.w.tolist());
  }
  let calls = 0;
  const failing = async () => {
    await undefined;
    if (++calls === 2) throw new Error("no second gradient");
    return later.closure();
  };
  await expect(other.step(failing)).rejects.toThrow("no second gradient");
  expect(later.w.tolist()).toEqual(now.w.tolist());
  const compiled = compile(() => void other.step(closure));
  expectCode("UNSUPPORTED", compiled);
});

it("SAM moves the other way to maximize", () => {
  const [up, down] = [problem(), problem()];
  const [one, two] = [
    new SAM(new Descent([up.w], { lr: 0.1, maximize: true })),
    new SAM(new Descent([down.w], { lr: 0.1 })),
  ];
  const negated = () => {
    down.w.clearGradient();
    const loss = down.w.mul(down.w).sum().neg();
    loss.backward();
  };
  one.step(() => {
    up.w.clearGradient();
    up.w.mul(up.w).sum().backward();
  });
  two.step(negated);
  expect([...up.w.dataSync()]).toEqual([...down.w.dataSync()]);
});

it("SAM rejects steps without a closure, scalers, and wrappers around it", () => {
  const { w, closure } = problem();
  const optimizer = new SAM(new Descent([w], { lr: 0.1 }));
  closure();
  expectCode("BAD_ARGUMENT", () => optimizer.step());
  expectCode("UNSUPPORTED", () => optimizer.apply({}));
  expectCode("BAD_ARGUMENT", () => new Lookahead(optimizer));
  new SAM(new Lookahead(new Descent([w], { lr: 0.1 }))).step(closure);
});

it.each<[string, (o: Descent) => unknown]>([
  ["k of 0", (o) => new Lookahead(o, { k: 0 })],
  ["an alpha of 0", (o) => new Lookahead(o, { alpha: 0 })],
  ["an unknown option of Lookahead", (o) => new Lookahead(o, { beta: 1 } as never)],
  ["a negative rho", (o) => new SAM(o, { rho: -1 })],
  ["an unknown option of SAM", (o) => new SAM(o, { radius: 1 } as never)],
  ["a momentum of 1", (o) => scheduleFree(o, { momentum: 1 })],
  ["a negative power", (o) => scheduleFree(o, { weightLrPower: -1 })],
  ["an unknown option of scheduleFree", (o) => scheduleFree(o, { beta: 1 } as never)],
  ["a class in the place of an optimizer", () => scheduleFree(Descent as never)],
])("rejects %s", (_, make) => {
  expectCode("BAD_ARGUMENT", () => make(new Descent([problem().w], { lr: 0.1 })));
});

it("rejects a state that does not fit, and changes nothing", () => {
  const { w, closure } = problem();
  const optimizer = new Lookahead(new Momentum([w], { lr: 0.1 }));
  optimizer.step(closure);
  const { groups, state } = optimizer.stateDict();
  const wrong: OptimizerState[] = [
    { groups: [], state },
    { groups: [{ ...groups[0]!, slowParam: { steps: "2" } }], state },
    { groups: [{ ...groups[0]!, slowParam: undefined }], state },
    { groups, state: { w: { ...state.w!, slow_param: tensor([1]) } } },
    { groups: [{ ...groups[0]!, lr: Number.NaN }], state },
  ];
  for (const each of wrong) expectCode("BAD_STATE", () => optimizer.loadStateDict(each));
  expect(optimizer.stateDict().groups[0]!.slowParam).toEqual({ steps: 1 });
  expect(optimizer.stateDict().state.w!.slow_param).toBe(state.w!.slow_param);
});

it("SAM goes around others, and others not around it", () => {
  const w = parameter([1], { dtype: "f64" });
  for (const wrap of [(sam: SAM<never>) => new Lookahead(sam), scheduleFree, (sam: SAM<never>) => new SAM(sam)])
    expect(() => wrap(new SAM(new Descent([w])) as never)).toThrow(
      /without a closure, got a SAM\. SAM goes around others/,
    );
});

describe("averages inside of wrappers", () => {
  /** Its averages are twice the weights. */
  class Doubling extends Descent {
    train(): void {
      for (const { params } of this.groups) for (const param of params) param.set(param.div(2));
    }
    eval(): void {
      for (const { params } of this.groups) for (const param of params) param.set(param.mul(2));
    }
  }

  it("are evaluated by what combines or climbs", async () => {
    const w = parameter([[1, 2]], { dtype: "f64" });
    const combined = combine([["w", w]], { matrices: Doubling, rest: Descent });
    for (const wrapper of [combined, new SAM(combined)]) {
      wrapper.eval();
      expect(Array.from(await w.data())).toEqual([2, 4]);
      wrapper.train();
      expect(Array.from(await w.data())).toEqual([1, 2]);
    }
  });

  it("are not averaged again", () => {
    const w = parameter([1], { dtype: "f64" });
    expectCode("BAD_ARGUMENT", () => new Lookahead(new Doubling([w])));
    expectCode("BAD_ARGUMENT", () => scheduleFree(scheduleFree(new Descent([w]))));
    expectCode(
      "BAD_ARGUMENT",
      () => new Lookahead(combine([["w", parameter([[1]])]], { matrices: Doubling, rest: Descent })),
    );
  });

  it("change nothing where no optimizer keeps some", async () => {
    const w = parameter([1], { dtype: "f64" });
    new Lookahead(new Descent([w])).eval();
    expect(Array.from(await w.data())).toEqual([1]);
  });

  it("show what they are made of", () =>
    expect(String(new SAM(new Descent([parameter([1])])))).toMatch(/^SAM\(\n {2}descent\(\n {4}\(0\): lr=/i));
});

it("takes no groups after it was made, and says what to do", () => {
  const [w, added] = [parameter([1], { name: "w" }), parameter([2], { name: "added" })];
  const wrappers = [
    new Lookahead(new Descent([w], { lr: 0.5 })),
    new SAM(new Descent([w], { lr: 0.5 })),
    scheduleFree(new Descent([w], { lr: 0.5 })),
  ];
  for (const wrapper of wrappers) expectCode("UNSUPPORTED", () => wrapper.addGroup({ params: [added] }));
  const inner = new Descent([w], { lr: 0.5 });
  inner.addGroup({ params: [added] });
  const anew = new Lookahead(inner, { k: 1, alpha: 0.5 });
  [w.grad, added.grad] = [tensor([1]), tensor([1])];
  anew.step();
  expect([w, added].map((each) => each.dataSync()[0])).toEqual([0.75, 1.75]);
});
