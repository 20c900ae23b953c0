import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { add, applyRuleInPlace, defineRule, fma, mul, noGrad, parameter, type Tensor, tensor } from "../index";

const axpy = defineRule({
  name: "axpy",
  buffers: ["y", "x"],
  scalars: ["a", "b"],
  update: ({ y, x }, { a, b }) => ({ y: fma(mul(a, b), x, y) }),
});

it.each(["f32", "f64"] as const)("updates several tensors in one launch, by numbers and tensors, in %s", (dtype) => {
  const [y, x] = [tensor([1, 2], { dtype }), tensor([3, 4], { dtype })];
  const [row, other] = [tensor([[5]], { dtype }), tensor([6], { dtype })];
  const buffers = [
    { y, x },
    { y: row, x: other },
  ];
  applyRuleInPlace(axpy, buffers, { a: tensor([5], { dtype }), b: 2 });
  expect([y, x, row, other].map((each) => each.tolist())).toEqual([[31, 42], [3, 4], [[65]], [6]]);
});

it("counts as an overwrite of what the rule writes, and of nothing else", () => {
  const [y, x] = [parameter([1]), parameter([2])];
  const product = x.mul(x).sum();
  applyRuleInPlace(axpy, [{ y, x }], { a: 1, b: 1 });
  product.backward();
  expect(x.grad!.tolist()).toEqual([4]);
  const stale = y.mul(y).sum();
  noGrad(() => applyRuleInPlace(axpy, [{ y, x }], { a: 1, b: 1 }));
  expectCode("CHANGED", () => stale.backward());
});

describe("throws, and changes nothing, for", () => {
  const y = tensor([1, 2]);
  const x = tensor([3, 4]);
  const scalars = { a: 1, b: 1 };
  const sum = { name: "sum", update: add };
  it.each<[string, Parameters<typeof expectCode>[0], () => void]>([
    ["what is no rule", "BAD_ARGUMENT", () => applyRuleInPlace(sum as never, [{ y, x }] as never, scalars as never)],
    ["buffers that are no list", "BAD_ARGUMENT", () => applyRuleInPlace(axpy, { y, x } as never, scalars)],
    ["no buffers", "BAD_ARGUMENT", () => applyRuleInPlace(axpy, [], scalars)],
    ["a missing buffer", "BAD_ARGUMENT", () => applyRuleInPlace(axpy, [{ y } as { y: Tensor; x: Tensor }], scalars)],
    ["a missing scalar", "BAD_ARGUMENT", () => applyRuleInPlace(axpy, [{ y, x }], { a: 1 } as typeof scalars)],
    ["a buffer of another size", "BAD_SHAPE", () => applyRuleInPlace(axpy, [{ y, x: tensor([1]) }], scalars)],
    ["a scalar of two elements", "BAD_SHAPE", () => applyRuleInPlace(axpy, [{ y, x }], { a: x, b: 1 })],
    ["another dtype", "BAD_DTYPE", () => applyRuleInPlace(axpy, [{ y, x: x.to("f64") }], scalars)],
    [
      "a buffer on another device",
      "DEVICE_MISMATCH",
      () => applyRuleInPlace(axpy, [{ y, x: tensor([3, 4], { device: new FakeDevice() }) }], scalars),
    ],
    ["integers", "BAD_DTYPE", () => applyRuleInPlace(axpy, [{ y: y.to("i32"), x: x.to("i32") }], scalars)],
    [
      "a scalar of another dtype",
      "BAD_DTYPE",
      () => applyRuleInPlace(axpy, [{ y, x }], { a: tensor(1, { dtype: "f64" }), b: 1 }),
    ],
  ])("%s", (_, code, call) => {
    expectCode(code, call);
    expect(y.tolist()).toEqual([1, 2]);
  });
});
