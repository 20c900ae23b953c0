// Bits of integers, as JavaScript computes them.
import { expectCode, Random } from "@opt/testkit";
import { expect, it } from "vitest";
import {
  bitwiseAnd,
  bitwiseLeftShift,
  bitwiseNot,
  bitwiseOr,
  bitwiseRightShift,
  bitwiseXor,
  type Tensor,
  tensor,
} from "../../index";

const ENDS = [0, 1, -1, 2 ** 31 - 1, -(2 ** 31), 2 ** 30, -(2 ** 30), -(2 ** 30) - 1];
const random = new Random(5);
const drawn = () => [
  ...ENDS,
  ...Array.from({ length: 200 }, () => (random.below(2 ** 16) << 16) | random.below(2 ** 16)),
];
const [A, B] = [drawn(), drawn().reverse()];
const i32 = (numbers: readonly number[]) => tensor([...numbers], { dtype: "i32" });
const u8 = (numbers: readonly number[]) => tensor(Uint8Array.from(numbers));

it.each<[string, (a: Tensor, b: Tensor) => Tensor, (a: number, b: number) => number]>([
  ["and", bitwiseAnd, (a, b) => a & b],
  ["or", bitwiseOr, (a, b) => a | b],
  ["xor", bitwiseXor, (a, b) => a ^ b],
  ["not", bitwiseNot, (a) => ~a],
])("%s of i32 and u8", (_, op, right) => {
  const expected = A.map((a, i) => right(a, B[i]!));
  expect(op(i32(A), i32(B)).tolist()).toEqual(expected);
  expect(op(u8(A), u8(B)).tolist()).toEqual(expected.map((bits) => bits & 255));
});

it("shifts by each number of places, and by none that there is", () => {
  for (let n = 0; n < 32; n++) {
    expect(bitwiseLeftShift(i32(A), n).tolist()).toEqual(A.map((a) => a << n));
    expect(bitwiseRightShift(i32(A), i32([n])).tolist()).toEqual(A.map((a) => a >> n));
  }
  for (const n of [-1, 32, 2 ** 31 - 1, -(2 ** 31)]) {
    expect(bitwiseLeftShift(i32(A), n).tolist()).toEqual(A.map(() => 0));
    expect(bitwiseRightShift(i32(A), n).tolist()).toEqual(A.map((a) => (a < 0 ? -1 : 0)));
  }
  expect(bitwiseLeftShift(u8([200, 7]), 1).tolist()).toEqual([144, 14]);
  expect(bitwiseRightShift(u8([200, 7]), u8([1, 9])).tolist()).toEqual([100, 0]);
});

it("booleans have and, or, xor and not, and integers with them are integers", () => {
  const [a, b] = [tensor([true, true, false]), tensor([true, false, false])];
  const of = [bitwiseAnd(a, b), bitwiseOr(a, b), bitwiseXor(a, b), bitwiseNot(b)];
  expect(of.map((result) => [result.dtype, result.tolist()])).toEqual([
    ["bool", [true, false, false]],
    ["bool", [true, true, false]],
    ["bool", [false, true, false]],
    ["bool", [false, true, true]],
  ]);
  expect([bitwiseAnd(a, 3).dtype, bitwiseOr(a, u8([2])).dtype, bitwiseOr(u8([2]), i32([1])).dtype]).toEqual([
    "i32",
    "u8",
    "i32",
  ]);
  expectCode("BAD_DTYPE", () => bitwiseLeftShift(a, b));
  expectCode("BAD_DTYPE", () => bitwiseAnd(tensor([1]), 1));
  expectCode("BAD_DTYPE", () => bitwiseNot(tensor([1])));
  expectCode("BAD_ARGUMENT", () => bitwiseAnd(i32([1]), 0.5));
});
