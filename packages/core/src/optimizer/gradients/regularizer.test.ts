import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { Momentum } from "../../../testing/momentum";
import { compile } from "../../compile/compile";
import { parameter } from "../../create";
import { rewritten } from "../../rule/rewrite";
import { defineRule } from "../../rule/rule";
import type { Tensor } from "../../tensor/tensor";
import { l1, l2, type Regularizer } from "./regularizer";

const START = [1.5, -0.5, 0, 2];
const PENALTY = {
  l1: (w: Tensor, coefficient: number) => w.abs().sum().mul(coefficient),
  l2: (w: Tensor, coefficient: number) =>
    w
      .mul(w)
      .sum()
      .mul(coefficient / 2),
};

/** Trains on (w - 1)^4, with a regularizer or with its penalty in the loss. */
function train(optimizer: Momentum, w: Tensor, penalty: (w: Tensor) => Tensor | null, maximize: boolean): Float64Array {
  for (let step = 0; step < 5; step++) {
    optimizer.zeroGrad();
    const loss = w
      .sub(1)
      .pow(4)
      .sum()
      .mul(maximize ? -1 : 1);
    const extra = penalty(w);
    // Climbing the loss is descending its negative: the penalty goes down either way.
    (extra === null ? loss : maximize ? loss.sub(extra) : loss.add(extra)).backward();
    optimizer.step();
  }
  return w.dataSync() as Float64Array;
}

describe.each([l1(0.1), l2(0.3)])("$kind", (regularizer) => {
  it.each([false, true])("is its penalty added to the loss (maximize: %s)", (maximize) => {
    const run = (options: { regularizer?: Regularizer }, penalty: (w: Tensor) => Tensor | null) => {
      const w = parameter(START, { dtype: "f64" });
      return train(new Momentum([w], { lr: 0.01, maximize, ...options }), w, penalty, maximize);
    };
    const expected = run({}, (w) => PENALTY[regularizer.kind](w, regularizer.coefficient));
    const actual = run({ regularizer }, () => null);
    expect(actual).toAgreeWith(expected, { absolute: 1e-14, relative: 1e-14 });
    expect(actual).not.toAgreeWith(
      run({}, () => null),
      { absolute: 1e-4, relative: 0 },
    );
  });
});

it("makes one rule of a rule and a kind, under a name of its own", () => {
  const rules = ["rate", "speed"].map((scalar) =>
    defineRule({
      name: "descent",
      buffers: ["param", "grad"],
      scalars: [scalar],
      update: ({ grad }) => ({ param: grad }),
    }),
  );
  const made = rules.flatMap((rule) => (["l1", "l2"] as const).map((kind) => rewritten(rule, [kind])));
  expect(made.map(({ name, scalars }) => [name, ...scalars])).toEqual([
    ["descent after l1", "rate", "l1By0"],
    ["descent after l2", "rate", "l2By0"],
    ["descent after l1", "speed", "l1By0"],
    ["descent after l2", "speed", "l2By0"],
  ]);
  expect(rules.flatMap((rule) => (["l1", "l2"] as const).map((kind) => rewritten(rule, [kind])))).toEqual(made);
  expect(rewritten(rules[0]!, ["l1"])).toBe(made[0]);
});

describe("a regularizer", () => {
  const step = (optimizer: Momentum) => {
    for (const { params } of optimizer.groups) for (const param of params) param.mul(0).sum().backward();
    optimizer.step();
    return optimizer.groups.flatMap(({ params }) => params.map((param) => param.dataSync()[0]));
  };

  it("belongs to a group, and a group can be without", () => {
    const params = [1, 2, 3].map(() => parameter([1], { dtype: "f64" }));
    const groups = [
      { params: params[0]! },
      { params: params[1]!, regularizer: null },
      { params: params[2]!, regularizer: l1(0.5) },
    ];
    expect(step(new Momentum(groups, { lr: 1, momentum: 0, regularizer: l2(0.25) }))).toEqual([0.75, 1, 0.5]);
  });

  it("is chosen by name, one launch for each choice", () => {
    const device = new FakeDevice();
    const names = ["a.weight", "a.bias", "b.weight", "b.bias"];
    const params = names.map((name) => parameter([1], { dtype: "f64", device, name }));
    const regularizer = (name: string) => (name.endsWith("weight") ? l2(0.25) : null);
    const optimizer = new Momentum(params, { lr: 1, momentum: 0, regularizer });
    expect(step(optimizer)).toEqual([0.75, 1, 0.75, 1]);
    expect(device.launches.filter((kind) => kind === "rule").length).toBe(2);
  });

  it("that a function chooses badly is rejected before anything changes, in later groups too", () => {
    const params = [parameter([1]), parameter([1])];
    const bad = () => ({ kind: "l2", coefficient: -1 }) as Regularizer;
    const optimizer = new Momentum([{ params: params[0]! }, { params: params[1]!, regularizer: bad }]);
    expectCode("BAD_ARGUMENT", () => step(optimizer));
    expect(params.map((param) => param.dataSync()[0])).toEqual([1, 1]);
  });

  it.each([
    ["of its own", (penalty: Regularizer) => penalty],
    ["by a function", (penalty: Regularizer) => () => penalty],
  ])("whose coefficient is set, %s, is taken by the next step, eager and compiled", (_, option) => {
    const penalty = { kind: "l2", coefficient: 0.25 } as const;
    const optimizer = new Momentum([parameter([1], { dtype: "f64" })], { lr: 1, momentum: 0 });
    const [group] = optimizer.groups;
    group!.regularizer = option(penalty);
    const body = () => {
      group!.params[0]!.mul(0).sum().backward();
      optimizer.step();
      optimizer.zeroGrad();
    };
    const step = compile(body);
    const values = [0.25, 0.25, 0.25, 0.5, 0.5].map((coefficient, i) => {
      Object.assign(penalty, { coefficient });
      (i === 4 ? body : step)();
      return group!.params[0]!.dataSync()[0];
    });
    expect(values).toEqual([0.75, 0.75 ** 2, 0.75 ** 3, 0.75 ** 3 / 2, 0.75 ** 3 / 4]);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, "1"])("must not have the coefficient %s", (coefficient) => {
    expectCode("BAD_ARGUMENT", () => l1(coefficient as number));
    expectCode("BAD_ARGUMENT", () => l2(coefficient as number));
  });
});
