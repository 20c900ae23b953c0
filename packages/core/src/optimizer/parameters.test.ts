// What JavaScript would let through in silence: iterators that are used up, options in another place or under another name.
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { Momentum, type MomentumOptions } from "../../testing/momentum";
import { parameter, tensor } from "../create";
import { OptError } from "../errors/errors";
import type { Tensor } from "../tensor/tensor";
import { clipGradNorm, clipGradNormEach, clipGradValue } from "./gradients/clip";

function* parameters(): Generator<Tensor> {
  for (const value of [1, 2]) {
    const param = parameter([value]);
    param.grad = tensor([30]);
    yield param;
  }
}

function messageOf(body: () => unknown): string {
  try {
    body();
  } catch (error) {
    if (error instanceof OptError) return error.message;
    throw error;
  }
  return "nothing was rejected";
}

const uses: [string, (params: Iterable<Tensor>) => unknown][] = [
  ["an optimizer", (params) => new Momentum(params)],
  ["a group", (params) => new Momentum([{ params }])],
  ["a later group", (params) => new Momentum([parameter([1])]).addGroup({ params })],
  ["clipGradNorm", (params) => clipGradNorm(params, 1)],
  ["clipGradNormEach", (params) => clipGradNormEach(params, 1)],
  ["clipGradValue", (params) => clipGradValue(params, 1)],
];

it.each(uses)("an iterator serves %s once; used up, it is rejected by name", (_, use) => {
  const iterator = parameters();
  use(iterator);
  expectCode("BAD_ARGUMENT", () => use(iterator));
  expect(messageOf(() => use(iterator))).toMatch(/used up.*Call model\.parameters\(\) again/);
});

it("an empty list is an empty group, and nothing to clip", () => {
  expect(new Momentum([{ params: [] }, { params: new Set<Tensor>() }]).groups.length).toBe(2);
  expect(Number(clipGradNorm([], 1))).toBe(0);
  expect(clipGradValue(new Set(), 1)).toBe(undefined);
});

it.each([undefined, null, 3, "ab", {}])("%j in the place of parameters is rejected", (params) => {
  for (const [, use] of uses) expectCode("BAD_ARGUMENT", () => use(params as never));
});

it("a module in the place of parameters is told what it lacks", () => {
  const model = { parameters: () => [] };
  for (const params of [model, [model], [parameter([1]), model], [{ params: model }], [{ params: [model] }]])
    expect(messageOf(() => new Momentum(params as never))).toContain("Pass model.parameters()");
});

it.each<[string, unknown]>([
  ["a number", 0.5],
  ["null", null],
  ["text", "adam"],
  ["an array", [0.1]],
  ["a tensor", tensor([0.1])],
  ["a map", new Map([["lr", 0.1]])],
])("%s in the place of options is rejected", (_, options) => {
  expectCode("BAD_ARGUMENT", () => new Momentum([parameter([1])], options as Partial<MomentumOptions>));
  expectCode("BAD_ARGUMENT", () => clipGradNorm([parameter([1])], 1, options as never));
  expectCode("BAD_ARGUMENT", () => new Momentum([parameter([1])]).zeroGrad(options as never));
  expectCode("BAD_ARGUMENT", () => new Momentum([parameter([1])]).addGroup(options as never));
});

it.each<[string, () => unknown]>([
  ["momentum", () => new Momentum([parameter([1])], { momentun: 0.5 } as never)],
  ["momentum", () => new Momentum([{ params: parameter([1]), Momentum: 0.5 } as never])],
  ["regularizer", () => new Momentum([parameter([1])], { regulariser: null } as never)],
  ["errorIfNonfinite", () => clipGradNorm([], 1, { error_if_nonfinite: true } as never)],
  ["setToNull", () => new Momentum([parameter([1])]).zeroGrad({ set_to_null: false } as never)],
  ["afterStep", () => new Momentum([parameter([1])]).on("afterstep" as never, () => {})],
])("a misspelt %s is rejected, and the right one named", (name, body) => {
  expect(messageOf(body)).toMatch(`Did you mean ${name}?`);
});

it.each<[string, () => unknown]>([
  ["clipGradNorm's flag", () => clipGradNorm([], 1, { errorIfNonfinite: 1 } as never)],
  ["clipGradNorm's norm", () => clipGradNorm([], 1, { normType: "2" } as never)],
  ["zeroGrad's flag", () => new Momentum([parameter([1])]).zeroGrad({ setToNull: 0 } as never)],
  ["a hook", () => new Momentum([parameter([1])]).on("afterStep", "log" as never)],
  ["a closure", () => new Momentum([parameter([1])]).step(0.1 as never)],
  ["a climb", () => new Momentum([parameter([1])], { maximize: "yes" } as never)],
  ["a penalty", () => new Momentum([parameter([1])], { regularizer: 0.01 } as never)],
  ["no penalty", () => new Momentum([parameter([1])], { regularizer: false } as never)],
])("%s of another kind is rejected", (_, body) => expectCode("BAD_ARGUMENT", body));
