// A step as a function: its shapes, what it leaves alone, and what it rejects. Its numbers stand in e2e/goldens.

import { expectCode, gradCheck } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor, zeros } from "../create";
import { tidy } from "../device/scope";
import { fma, sub } from "../functions";
import type { Algorithm, BaseOptions, GroupOptions } from "../optimizer/algorithm";
import { l2 } from "../optimizer/gradients/regularizer";
import { Optimizer } from "../optimizer/optimizer";
import type { ParameterStateDict } from "../optimizer/state/state-dict";
import type { Expression } from "../rule/expression";
import { defineRule } from "../rule/rule";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { functional } from "./functional";

interface DecayedOptions extends BaseOptions {
  pair: readonly [number, number];
}

const rule = defineRule({
  name: "decayed",
  buffers: ["param", "grad", "average"],
  scalars: ["keep", "negLr"],
  update: ({ param, grad, average }, { keep, negLr }) => {
    const next: Expression = fma(keep, sub(average, grad), grad);
    return { param: fma(negLr, next, param), average: next };
  },
});

/** Its scalars are computed by arithmetic alone, and it counts a product that PyTorch would keep in float32. */
const algorithm: Algorithm<DecayedOptions> = {
  name: "Decayed",
  defaults: { lr: 0.1, maximize: false, pair: [0.5, 0.25] },
  validate() {},
  rule: () => rule,
  initialCounters: { step: 0, product: 1 },
  advance: ({ step, product }, { pair }, { mul, fround }) => ({
    step: step + 1,
    product: fround(mul(product!, pair[1])),
  }),
  scalars: ({ lr, pair }, { step, product }, { neg, mul, sub, pow }) => ({
    keep: sub(pair[0], product!),
    negLr: neg(mul(lr, pow(pair[0], step))),
  }),
};
class Decayed extends Optimizer<DecayedOptions> {
  protected override define(): Algorithm<DecayedOptions> {
    return algorithm;
  }
}

const w = () => parameter([1, -2]);
const numbers = (x: Tensor | number) => [...(x as Tensor).dataSync()];

describe("functional", () => {
  it.each([
    [2, undefined],
    [2, l2(0.5)],
  ])("steps as the class, in float32 and with a penalty", (_, regularizer) => {
    const optimizer = functional(Decayed, { regularizer });
    const plain = parameter([1, -2]);
    const stepped = new Decayed([plain], { regularizer });
    let params: Tensor[] = [tensor([1, -2])];
    let state = optimizer.init(params);
    for (let step = 1; step < 5; step++) {
      ({ params, state } = optimizer.update([tensor([step, 0.3])], state, params));
      plain.grad = tensor([step, 0.3]);
      stepped.step();
    }
    expect(params[0]!.dataSync()).toAgreeWith(plain.dataSync());
    const saved = stepped.stateDict().state["0"]!;
    expect([state[0]!.step, state[0]!.product]).toEqual([4, saved.product]);
    expect(numbers(state[0]!.average!)).toEqual(numbers(saved.average!));
  });

  it.each<Partial<DecayedOptions> & GroupOptions>([
    { maximize: true },
    { regularizer: l2(0.5) },
    { clip: { value: 0.2 } },
    { stateDType: "bf16" },
  ])("steps as the class with %o, for all steps and for one", (options) => {
    const start = [tensor([1, -2])];
    const gradients = [tensor([0.7, 0.3])];
    const stepped = parameter([1, -2]);
    const optimizer = new Decayed([stepped], options);
    stepped.grad = gradients[0]!;
    optimizer.step();
    const all = functional(Decayed, options);
    const plain = functional(Decayed);
    const begun = options.stateDType === undefined ? plain : all;
    const found = [
      all.update(gradients, all.init(start), start),
      plain.update(gradients, begun.init(start), start, options),
    ];
    for (const { params, state } of found) {
      expect(numbers(params[0]!)).toEqual(numbers(stepped));
      const average = state[0]!.average as Tensor;
      const expected = optimizer.stateDict().state["0"]!.average as Tensor;
      expect([average.dtype, numbers(average)]).toEqual([expected.dtype, numbers(expected)]);
    }
  });

  it("is differentiated by options, also those of a pair, and by weights", async () => {
    const after = (first: Tensor, lr: Tensor, low: Tensor, high: Tensor) => {
      const optimizer = functional(Decayed, { lr, pair: [low, high] });
      let params = [first];
      let state = optimizer.init(params);
      for (let step = 0; step < 3; step++) {
        ({ params, state } = optimizer.update([params[0]!.pow(2).mul(0.3)], state, params));
      }
      return params[0]!;
    };
    await gradCheck(after, [tensor([1, -2]), tensor(0.1), tensor([0.5]), tensor(0.25)]);
  });

  it("takes records, and overrides for one step; who has no gradient stays as he is", () => {
    const optimizer = functional(Decayed);
    const params = { a: tensor([1, 2]), b: tensor([[3]]) };
    const state = optimizer.init(params);
    const next = optimizer.update({ a: null, b: tensor([[1]]) }, state, params, { lr: 0 });
    expect([next.params.a, next.state.a]).toEqual([params.a, state.a]);
    expect(numbers(next.params.b)).toEqual([3]);
    expect([state.b.step, next.state.b.step]).toEqual([0, 1]);
  });

  it.each([0.1, tensor(0.1, { dtype: "f64" })])("steps each of many as alone, pair to %s", (high) => {
    const optimizer = functional(Decayed, { lr: undefined, pair: [0.5, high] });
    const starts: ["f32" | "f64", ParameterStateDict][] = [
      ["f32", { step: 0, product: 1 }],
      ["f32", { step: 3, product: 1 }],
      ["f32", { step: 0, product: 2 }],
      ["f64", { step: 0, product: 1 }],
    ];
    const run = (some: typeof starts) => {
      let params = some.map(([dtype]) => tensor([1, -2], { dtype }));
      let state = optimizer.init(params).map((made, i) => ({ ...made, ...some[i]![1] }));
      const gradients = params.map(({ dtype }) => tensor([1, 0.3], { dtype }));
      for (let i = 0; i < 3; i++) ({ params, state } = optimizer.update(gradients, state, params));
      return params.map((x, i) => [...numbers(x), Number(state[i]!.product)]);
    };
    expect(run(starts)).toEqual(starts.flatMap((one) => run([one])));
  });

  it("takes options from a device that answers later", async () => {
    const device = new FakeDevice({ async: true });
    const [params, gradients] = [[tensor([1, -2], { device })], [tensor([1, 1], { device })]];
    const optimizer = functional(Decayed, { lr: tensor(0.5, { device }) });
    const next = optimizer.update(gradients, optimizer.init(params), params);
    expect([...(await next.params[0]!.data())]).toEqual([0.8125, -2.1875]);
  });

  it("learns from a tensor that is 0, takes float32 options, and leaves nothing behind", () => {
    const lr = parameter(0);
    const optimizer = functional(Decayed, { lr });
    const [params, gradients] = [[tensor([1, -2])], [tensor([1, 1])]];
    const state = optimizer.init(params);
    const { tensors } = lr.device.memory();
    const next = optimizer.update(gradients, state, params);
    tidy(() => next.params[0]!.sum().backward());
    expect(Number(lr.grad)).toBeCloseTo(-0.75);
    for (const made of [next.params[0]!, next.state[0]!.average as Tensor, lr.grad!]) made.dispose();
    expect(lr.device.memory().tensors).toBe(tensors);
  });

  it("rounds what counters keep in float32 as the class does, with a gradient; in float64 it does not where options are tensors", () => {
    const product = (dtype: "f32" | "f64", high: number | Tensor) => {
      const params = [zeros([1], { dtype })];
      const optimizer = functional(Decayed, { pair: [0.5, high] });
      return optimizer.update([zeros([1], { dtype })], optimizer.init(params), params).state[0]!.product!;
    };
    const high = parameter(0.1, { dtype: "f64" });
    expect(product("f64", 0.1)).toBe(Math.fround(0.1));
    const rounded = product("f32", high) as Tensor;
    expect(numbers(rounded)).toEqual([Math.fround(0.1)]);
    rounded.backward();
    expect(Number(high.grad)).toBe(1);
    expect(numbers(product("f64", high))).toEqual([0.1]);
  });

  it("rejects an algorithm that computes with JavaScript's operators, but only for tensors", () => {
    const [params, gradients] = [[w()], [tensor([1, 1])]];
    const state = functional(Momentum).init(params);
    functional(Momentum, { momentum: 0.5 }).update(gradients, state, params);
    const learned = functional(Momentum, { momentum: parameter(0.5) });
    expectCode("UNSUPPORTED", () => learned.update(gradients, state, params));
  });

  it.each<[string, string, () => unknown]>([
    ["what is no optimizer", "BAD_ARGUMENT", () => functional(class {} as never)],
    ["a function", "BAD_ARGUMENT", () => functional((() => {}) as never)],
    ["nothing", "BAD_ARGUMENT", () => functional(null as never)],
    ["an instance", "BAD_ARGUMENT", () => functional(new Momentum([w()]) as never)],
    ["a wrong option", "BAD_ARGUMENT", () => functional(Momentum, { momentun: 1 } as never)],
    ["invalid options", "BAD_ARGUMENT", () => functional(Momentum, 1 as never)],
    ["an option out of range", "BAD_ARGUMENT", () => functional(Momentum, { momentum: -1 })],
    ["a tensor out of range", "BAD_ARGUMENT", () => functional(Momentum, { lr: tensor(-1) })],
    ["a tensor that is no number", "BAD_ARGUMENT", () => functional(Momentum, { lr: tensor(Number.NaN) })],
    ["a tensor of two", "BAD_ARGUMENT", () => functional(Momentum, { lr: tensor([1, 2]) })],
    ["an integer tensor", "BAD_ARGUMENT", () => functional(Momentum, { lr: tensor(1, { dtype: "i32" }) })],
    ["a clipped norm", "UNSUPPORTED", () => functional(Momentum, { clip: { norm: 1 } })],
  ])("rejects %s", (_, code, body) => expectCode(code as never, body));

  const optimizer = functional(Decayed);
  const [params, gradients] = [[tensor([1, 2])], [tensor([1, 1])]];
  const state = optimizer.init(params);
  const a = tensor(1);
  const named = optimizer.init({ a, b: a });
  const gone = tensor([1, 1]);
  gone.dispose();
  it.each<[string, string, () => unknown]>([
    ["one tensor for a list", "BAD_ARGUMENT", () => optimizer.init(params[0] as never)],
    ["null for a list", "BAD_ARGUMENT", () => optimizer.init(null as never)],
    ["a number for a list", "BAD_ARGUMENT", () => optimizer.init(1 as never)],
    ["text for a list", "BAD_ARGUMENT", () => optimizer.init("w" as never)],
    ["numbers in a list", "BAD_ARGUMENT", () => optimizer.init([1 as never])],
    ["16-bit parameters", "BAD_DTYPE", () => optimizer.init([tensor([1], { dtype: "bf16" })])],
    ["disposed parameters", "DISPOSED", () => optimizer.init([gone])],
    ["disposed gradients", "DISPOSED", () => optimizer.update([gone], state, params)],
    ["gradients of another shape", "BAD_SHAPE", () => optimizer.update([tensor([1])], state, params)],
    ["gradients of another dtype", "BAD_DTYPE", () => optimizer.update([zeros([2], { dtype: "f64" })], state, params)],
    ["a gradient that is a number", "BAD_ARGUMENT", () => optimizer.update([1 as never], state, params)],
    ["too few gradients", "BAD_ARGUMENT", () => optimizer.update([], state, params)],
    ["too many gradients", "BAD_ARGUMENT", () => optimizer.update([...gradients, null], state, params)],
    ["null for gradients", "BAD_ARGUMENT", () => optimizer.update(null as never, state, params)],
    [
      "gradients by other names",
      "BAD_ARGUMENT",
      () => optimizer.update({ a: null, c: null } as never, named, { a, b: a }),
    ],
    ["no state", "BAD_ARGUMENT", () => optimizer.update(gradients, undefined as never, params)],
    ["another state", "BAD_STATE", () => optimizer.update(gradients, functional(Momentum).init(params), params)],
    ["state without tensors", "BAD_STATE", () => optimizer.update(gradients, [{ step: 1, product: 1 }], params)],
    ["state that is a number", "BAD_STATE", () => optimizer.update(gradients, [1 as never], params)],
    [
      "state without a count",
      "BAD_STATE",
      () => optimizer.update(gradients, [{ ...state[0]!, step: "1" as never }], params),
    ],
    [
      "a count that is a tensor",
      "BAD_STATE",
      () => optimizer.update(gradients, [{ ...state[0]!, step: a as never }], params),
    ],
    [
      "a product that is missing",
      "BAD_STATE",
      () => optimizer.update(gradients, [{ ...state[0]!, product: null as never }], params),
    ],
    ["state of another shape", "BAD_STATE", () => optimizer.update(gradients, optimizer.init([tensor([1])]), params)],
    ["a wrong override", "BAD_ARGUMENT", () => optimizer.update(gradients, state, params, { rl: 1 } as never)],
  ])("rejects %s", (_, code, body) => expectCode(code as never, body));

  it("is not compiled, which would count the same step again; without a tape it is a step all the same", () => {
    expectCode(
      "UNSUPPORTED",
      compile(() => {
        optimizer.update(gradients, state, params);
      }),
    );
    const next = noGrad(() => functional(Decayed, { lr: parameter(0.1) }).update(gradients, state, params));
    expect(next.params[0]!.requiresGrad).toBe(false);
  });
});
