// Dtypes of results where one operand has no dimensions: as torch.result_type.
import "@opt/testkit";
import { describe, expect, it } from "vitest";
import { parameter, tensor } from "../create";
import { add, less, where } from "../functions";
import { concat, stack } from "../index";

const BY = ["bool", "u8", "i32", "f16", "bf16", "f32", "f64"] as const;
/** Of a tensor with dimensions, by the dtype of one without. */
const RESULTS: Record<(typeof BY)[number], string> = {
  bool: "bool u8 i32 f16 bf16 f32 f64",
  u8: "u8 u8 u8 f16 bf16 f32 f64",
  i32: "i32 i32 i32 f16 bf16 f32 f64",
  f16: "f16 f16 f16 f16 f16 f16 f16",
  bf16: "bf16 bf16 bf16 bf16 bf16 bf16 bf16",
  f32: "f32 f32 f32 f32 f32 f32 f32",
  f64: "f64 f64 f64 f64 f64 f64 f64",
};

describe.each(BY)("%s [2]", (dtype) => {
  it.each(BY.map((by, i) => [by, RESULTS[dtype].split(" ")[i]] as const))("and %s [] is %s", (by, result) => {
    const [x, y] = [tensor([1, 0], { dtype }), tensor(1, { dtype: by })];
    expect([add(x, y).dtype, add(y, x).dtype]).toEqual([result, result]);
  });
});

/** torch.cat and torch.stack (PyTorch 2.13) give these dtypes and values. */
it.each([
  ["bool", "u8", "u8", [1, 2]],
  ["u8", "i32", "i32", [1, 2]],
  ["f32", "i32", "f32", [1.5, 2]],
  ["i32", "f16", "f16", [1, 2]],
  ["f16", "bf16", "f32", [1.5, 2]],
  ["f32", "f64", "f64", [1.5, 2]],
] as const)("joined, %s and %s are %s", (first, second, dtype, values) => {
  const tensors = [tensor([values[0]], { dtype: first }), tensor([2], { dtype: second })];
  const [joined, stacked] = [concat(tensors), stack(tensors)];
  expect([joined.dtype, stacked.dtype]).toEqual([dtype, dtype]);
  expect([joined.tolist(), stacked.tolist()]).toEqual([values, values.map((value) => [value])]);
});

it("joined, each gets its gradient in its own dtype", () => {
  const [x, y] = [parameter([1], { dtype: "bf16" }), parameter([2, 3])];
  concat([x, y, tensor(Int32Array.of(7))])
    .mul(tensor([1, 2, 3, 4]))
    .sum()
    .backward();
  expect([x.grad!.dtype, y.grad!.dtype]).toEqual(["bf16", "f32"]);
  expect([x.grad!.tolist(), y.grad!.tolist()]).toEqual([[1], [2, 3]]);
});

it("two of several dimensions, and two without, decide together", () => {
  expect(add(tensor([1], { dtype: "bf16" }), tensor([1])).dtype).toBe("f32");
  expect(add(tensor(1, { dtype: "bf16" }), tensor(1)).dtype).toBe("f32");
});

it("what has no dimensions is computed with in the other's precision, and gets its gradient in its own", () => {
  const [x, y] = [parameter([1, 2], { dtype: "bf16" }), parameter(1.001)];
  x.mul(y).sum().backward();
  expect(x.mul(y).dataSync()).toAgreeWith([1, 2]);
  expect([y.grad!.dtype, ...y.grad!.dataSync()]).toEqual(["f32", 3]);
  expect(x.grad!.dtype).toBe("bf16");
  expect([...less(tensor([0.1]), tensor(0.1, { dtype: "f64" })).dataSync()]).toEqual([0]);
  expect(where(tensor([1, 0], { dtype: "bool" }), x, y).dtype).toBe("bf16");
});

it.each(["f16", "bf16"] as const)("what %s is compared with is rounded to it first, as in PyTorch", (dtype) => {
  const x = tensor([0.1, 0.3], { dtype });
  expect([...x.eq(0.1).dataSync(), ...x.lt(0.1).dataSync(), ...x.ge(0.3).dataSync()]).toEqual([1, 0, 0, 0, 0, 1]);
  expect([...x.eq(tensor(0.1)).dataSync(), ...less(tensor(0.1), x).dataSync()]).toEqual([1, 0, 0, 1]);
  expect([...x.eq(tensor([0.1, 0.3])).dataSync()]).toEqual([0, 0]); // two of several dimensions are f32 together
});
