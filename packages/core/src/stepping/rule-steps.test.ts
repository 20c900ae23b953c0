// Steps as rules and scalars: computed element by element by anybody, they have the bits of the class.
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { Momentum, type MomentumOptions } from "../../testing/momentum";
import { parameter, tensor } from "../create";
import type { Counters, GroupOptions } from "../optimizer/algorithm";
import { l1 } from "../optimizer/gradients/regularizer";
import type { OptimizerClass } from "../optimizer/optimizer-class";
import { StagedOptimizer } from "../optimizer/staged";
import { interpret } from "../rule/interpret";
import { ruleSteps } from "./rule-steps";

const OPTIONS: (Partial<MomentumOptions> & GroupOptions)[] = [
  {},
  { maximize: true, clip: { value: 0.5 }, regularizer: l1(0.1) },
  { averaged: true, regularizer: (name) => (name === "w" ? l1(0.2) : null) },
];

it.each<Partial<MomentumOptions> & GroupOptions>([
  { maximize: true },
  { regularizer: l1(0.1) },
  { clip: { value: 0.5 } },
  { lr: 0.3 },
])("takes %o for one step as for all", (options) => {
  const all = ruleSteps(Momentum, options);
  const one = ruleSteps(Momentum);
  const { rule, scalars } = one.next(one.initial, "w", options);
  const expected = all.next(all.initial, "w");
  expect([rule.name, scalars]).toEqual([expected.rule.name, expected.scalars]);
  const plain = one.next(one.initial, "w");
  expect([rule.name, scalars]).not.toEqual([plain.rule.name, plain.scalars]);
});

it.each(OPTIONS)("has the bits of the class with %o", (options) => {
  const w = parameter([1, -2, 0.5]);
  const optimizer = new Momentum([["w", w]], options);
  const steps = ruleSteps(Momentum, options);
  const buffers = [Float32Array.of(1, -2, 0.5), new Float32Array(3), ...steps.keys.map(() => new Float32Array(3))];
  let counters: Counters = steps.initial;
  for (const lr of [0.1, 0.2]) {
    buffers[1]!.set([lr, -3, 0.25]);
    w.grad = tensor(buffers[1]!);
    optimizer.groups[0]!.lr = lr;
    optimizer.step();
    const { rule, scalars, ...next } = steps.next(counters, "w", { lr });
    interpret(rule.program, "f32", buffers, scalars, (slot, i, value) => (buffers[slot]![i] = value), 0, 3);
    ({ counters } = next);
  }
  expect(buffers[0]).toEqual(w.dataSync());
  expect(counters.step).toBe(2);
});

it("leaves the factor of clip.norm to the library", () => {
  const options = { clip: { norm: 0.5, value: 1 }, maximize: true };
  const { rule, scalars, factor } = ruleSteps(Momentum, options).next({ step: 0 }, "w");
  const given = scalars.map((value, slot) => (slot === factor!.slot ? 0.1 : value));
  const buffers = [Float32Array.of(1), Float32Array.of(5), new Float32Array(1)];
  interpret(rule.program, "f32", buffers, given, (slot, i, value) => (buffers[slot]![i] = value), 0, 1);
  const w = parameter([1]);
  const optimizer = new Momentum([w], options);
  w.grad = tensor([5]);
  optimizer.step();
  expect([scalars[factor!.slot], factor!.limit]).toEqual([Number.NaN, 0.5]);
  expect(buffers[0]![0]).toBeCloseTo(w.dataSync()[0]!, 6);
});

class Staged extends StagedOptimizer<MomentumOptions> {
  protected override define() {
    return (Momentum.prototype as unknown as { define(): never }).define();
  }
  protected override stages(): never {
    throw new Error("not asked for");
  }
}

it("rejects what is no class of one rule, and what a rule cannot do by itself", () => {
  for (const no of [undefined, {}, class {}, new Momentum([parameter([1])])]) {
    expectCode("BAD_ARGUMENT", () => ruleSteps(no as OptimizerClass<MomentumOptions>));
  }
  expectCode("UNSUPPORTED", () => ruleSteps(Staged));
  for (const options of [{ stateDType: "bf16" }, { lazyMode: true }] as const) {
    expectCode("UNSUPPORTED", () => ruleSteps(Momentum, options));
    expectCode("UNSUPPORTED", () => ruleSteps(Momentum).next({ step: 0 }, "w", options));
  }
  expectCode("BAD_ARGUMENT", () => ruleSteps(Momentum, { lrr: 1 } as never));
  expectCode("BAD_ARGUMENT", () => ruleSteps(Momentum).next({ step: 0 }, "w", { lr: -1 }));
});
