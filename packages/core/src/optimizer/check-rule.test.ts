import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { defineRule, type Rule } from "../rule/rule";
import { add, fma, mul } from "../rule/symbols";
import { functional } from "../stepping/functional";
import { ruleSteps } from "../stepping/rule-steps";
import type { Algorithm, BaseOptions, Counters } from "./algorithm";
import { Optimizer } from "./optimizer";

function optimizerOf(rule: Rule, own: Partial<Algorithm<BaseOptions>> = {}) {
  return class extends Optimizer<BaseOptions> {
    protected override define(): Algorithm<BaseOptions> {
      return {
        name: "Own",
        defaults: { lr: 0.1, maximize: false },
        validate() {},
        rule: () => rule,
        initialCounters: { step: 0 },
        advance: ({ step }) => ({ step: step + 1 }),
        scalars: ({ lr }) => ({ negLr: -lr }),
        ...own,
      };
    }
  };
}

/** Momentum, whose buffers have these names. */
function momentum(param: string, grad: string, sum: string): Rule {
  return defineRule<string, string>({
    name: `momentum of ${sum}`,
    buffers: [param, grad, sum],
    scalars: ["negLr"],
    update: (buffers, { negLr }) => {
      const next = fma(0.5, buffers[sum]!, buffers[grad]!);
      return { [param]: add(buffers[param]!, mul(negLr!, next)), [sum]: next };
    },
  });
}

const given = () => {
  const w = parameter([1, 2]);
  w.grad = tensor([1, 1]);
  return w;
};

describe("a rule of an optimizer", () => {
  it.each([
    ["param", "grad", "sum"],
    ["weight", "gradient", "velocity"],
    ["param", "grad", "direction"],
  ])("may call its buffers %s, %s and %s", (...names) => {
    const Own = optimizerOf(momentum(...names));
    const w = given();
    const optimizer = new Own([w]);
    optimizer.step();
    optimizer.step();
    expect(w.dataSync()).toAgreeWith([0.75, 1.75], { absolute: 1e-6, relative: 0 });
    expect(Object.keys(optimizer.stateDict().state["0"]!)).toEqual(["step", names[2]]);
    const { init, update } = functional(Own, {});
    const x = parameter([1, 2]);
    const { params } = update([tensor([1, 1])], init([x]), [x]);
    expect(params[0]!.dataSync()).toAgreeWith([0.9, 1.9], { absolute: 1e-6, relative: 0 });
  });

  const alone = defineRule({
    name: "alone",
    buffers: ["param"],
    scalars: [],
    update: ({ param }) => ({ param: mul(param, 0.5) }),
  });
  const readsDirection = defineRule({
    name: "readsDirection",
    buffers: ["param", "grad", "direction"],
    scalars: [],
    update: ({ param, direction }) => ({ param: add(param, direction) }),
  });
  const other = defineRule({
    name: "other",
    buffers: ["grad", "param"],
    scalars: ["negLr"],
    update: ({ param, grad }, { negLr }) => ({ param: fma(negLr, grad, param) }),
  });

  const writesGradient = defineRule({
    name: "writesGradient",
    buffers: ["param", "grad"],
    scalars: ["negLr"],
    update: ({ param, grad }, { negLr }) => ({ param: fma(negLr, grad, param), grad: mul(grad, 0.5) }),
  });

  it.each([
    ["has the name of a counter", momentum("param", "grad", "step")],
    ["has the name of the float32 copy", momentum("param", "grad", "masterParam")],
    ["has no gradient", alone],
    ["has the gradient first", other],
    ["writes the gradient", writesGradient],
    ["asks for stages", readsDirection],
    ["is undefined", undefined as never],
    ["is a name", "adam" as never],
  ])("is rejected where it %s", (_, rule) => {
    const Own = optimizerOf(rule);
    const w = given();
    expectCode("BAD_ARGUMENT", () => new Own([w]).step());
    expect(w.tolist()).toEqual([1, 2]);
    expectCode("BAD_ARGUMENT", () => functional(Own, {}).init([w]));
  });
});

it("a rule of two algorithms is asked for what each of them counts", () => {
  const rule = momentum("param", "grad", "sum");
  const [a, b] = [given(), given()];
  new (optimizerOf(rule))([a]).step();
  const counting = {
    initialCounters: { step: 0, sum: 0 },
    advance: ({ step }: Counters) => ({ step: step + 1, sum: 1 }),
  };
  expectCode("BAD_ARGUMENT", () => new (optimizerOf(rule, counting))([b]).step());
  expect(b.tolist()).toEqual([1, 2]);
});

describe("counters", () => {
  const both = { step: 0, product: 1 };
  it.each<[string, (counters: Counters) => unknown, Counters?]>([
    ["are undefined", () => undefined],
    ["are a promise", async ({ step }) => ({ step: step + 1 })],
    ["count no step", () => ({ step: Number.NaN })],
    ["count half steps", ({ step }) => ({ step: step + 0.5 })],
    ["count downwards", ({ step }) => ({ step: step - 1 })],
    ["are text", ({ step }) => ({ step: `${step}1` })],
    ["were changed in place", (counters) => Object.assign(counters, { step: counters.step + 1 })],
    ["have a name that no state is loaded with", ({ step }) => ({ step: step + 1, product: 0.5 })],
    ["lack one", ({ step }) => ({ step: step + 1 }), both],
    ["are past all numbers", ({ step }) => ({ step: step + 1, product: Number.POSITIVE_INFINITY }), both],
  ])("that %s are rejected before anything has changed", (_, advance, initialCounters = { step: 0 }) => {
    const own = { advance: advance as never, initialCounters: { ...initialCounters } };
    const Own = optimizerOf(momentum("param", "grad", "sum"), own);
    const w = given();
    const optimizer = new Own([w]);
    for (let i = 0; i < 2; i++) expectCode("BAD_ARGUMENT", () => optimizer.step());
    expect(w.tolist()).toEqual([1, 2]);
    const { init, update } = functional(Own, {});
    expectCode("BAD_ARGUMENT", () => update([tensor([1, 1])], init([w]), [w]));
    const steps = ruleSteps(Own);
    expectCode("BAD_ARGUMENT", () => steps.next(steps.initial, "w"));
  });

  it("that a compiled step gets are rejected, and the next one goes on from those before", () => {
    let isBroken = false;
    const Own = optimizerOf(momentum("param", "grad", "sum"), {
      advance: ({ step }) => ({ step: isBroken ? Number.NaN : step + 1 }),
    });
    const w = given();
    const optimizer = new Own([w]);
    const step = compile(() => optimizer.step(), { check: "never" });
    for (let i = 0; i < 2; i++) step();
    expect(w.dataSync()).toAgreeWith([0.75, 1.75], { absolute: 1e-6, relative: 0 });
    isBroken = true;
    expectCode("BAD_ARGUMENT", step);
    isBroken = false;
    step();
    expect(optimizer.stateDict().state["0"]!.step).toBe(3);
    expect(w.dataSync()).toAgreeWith([0.575, 1.575], { absolute: 1e-6, relative: 0 });
  });
});
