// i32 and u8 arithmetic as PyTorch's: modulo 2^32 and 2^8. The expected numbers are PyTorch's.
import fc from "fast-check";
import { expect, it } from "vitest";
import { full, tensor } from "../create";
import {
  add,
  clamp,
  fma,
  less,
  maskedFill,
  maximum,
  minimum,
  mul,
  pow,
  square as squared,
  sub,
  where,
} from "../functions";
import { Generator } from "../random/generator";
import type { Tensor } from "../tensor/tensor";

const i32 = () => tensor(Int32Array.of(2147483647, -2147483648, 7));
const [i, u] = [{ dtype: "i32" }, { dtype: "u8" }] as const;
const row = (...values: number[]) => tensor(Int32Array.from(values));
const square = (value: number, options: typeof i | typeof u) => full([2, 2], value, options);
const u8 = () => tensor(Uint8Array.of(200, 10));

it.each<[string, () => Tensor, number[]]>([
  ["i32 + 1", () => i32().add(1), [-2147483648, -2147483647, 8]],
  ["i32 - 1", () => i32().sub(1), [2147483646, 2147483647, 6]],
  ["i32 * i32", () => i32().mul(i32()), [1, 0, 49]],
  ["i32 * 3", () => i32().mul(3), [2147483645, -2147483648, 21]],
  ["i32 * 65537", () => tensor(Int32Array.of(123456789, -987654321)).mul(65537), [-730804971, 1550882639]],
  ["i32 + 3e9", () => i32().add(3e9), [852516351, 852516352, -1294967289]],
  ["-i32", () => i32().neg(), [-2147483647, -2147483648, -7]],
  ["|i32|", () => i32().abs(), [2147483647, -2147483648, 7]],
  ["fma of i32", () => fma<Tensor>(i32(), 2, 5), [3, 5, 19]],
  ["i32 ** 2", () => tensor(Int32Array.of(-3, 46341)).pow(2), [9, -2147479015]],
  ["i32 ** i32", () => pow<Tensor>(tensor(Int32Array.of(7, 1, -1)), tensor(Int32Array.of(-1, 2, 3))), [0, 1, -1]],
  ["(-2) ** i32", () => pow<Tensor>(-2, tensor(Int32Array.of(3, 32))), [-8, 0]],
  ["i32 ** 3 beyond 2^53", () => i32().pow(3), [2147483647, 0, 343]],
  ["i32 ** 2000000000", () => row(3, -46341, 0).pow(2000000000), [632360961, 2092937217, 0]],
  [
    "i32 ** i32 beyond 2^53",
    () => pow<Tensor>(row(-46341, 7, -3), row(2, 31, 40)),
    [-2147479015, 265001655, 689956897],
  ],
  [
    "i32 ** negative i32",
    () => pow<Tensor>(row(1, -1, -1, 7, 0, -2147483648), row(-5, -5, -4, -1, -1, -1)),
    [1, -1, 1, 0, 0, 0],
  ],
  ["3 ** i32", () => pow<Tensor>(3, row(2147483647, 65536, 0)), [-1431655765, -386662399, 1]],
  ["i32 ** 0", () => row(0, -7).pow(0), [1, 1]],
  ["i32 < 3e9", () => less<Tensor>(i32(), 3e9), [1, 1, 1]],
  ["i32 < 6.5", () => less<Tensor>(i32(), 6.5), [0, 1, 0]],
  ["6.5 < i32", () => less<Tensor>(6.5, i32()), [1, 0, 1]],
  ["a sum", () => i32().sum(), [6]],
  ["a sum over the edge", () => tensor(Int32Array.of(2147483647, 1)).sum(), [-2147483648]],
  ["the largest", () => i32().max(), [2147483647]],
  ["relu", () => i32().relu(), [2147483647, 0, 7]],
  ["maximum and minimum", () => maximum<Tensor>(minimum<Tensor>(i32(), 5), -5), [5, -5, 5]],
  ["a choice", () => where<Tensor>(less<Tensor>(i32(), 8), 16777217, i32()), [2147483647, 16777217, 16777217]],
  ["u8 + u8", () => u8().add(u8()), [144, 20]],
  ["u8 - u8 - 1", () => u8().sub(u8()).sub(1), [255, 255]],
  ["u8 * u8", () => u8().mul(u8()), [64, 100]],
  ["-u8", () => u8().neg(), [56, 246]],
  ["u8 + 300", () => u8().add(300), [244, 54]],
  ["u8 * 256", () => u8().mul(256), [0, 0]],
  ["u8 ** 2", () => u8().pow(2), [64, 100]],
  ["u8 ** 31", () => tensor(Uint8Array.of(255, 254, 15, 3)).pow(31), [255, 0, 239, 43]],
  ["u8 ** u8", () => pow<Tensor>(tensor(Uint8Array.of(15, 77, 128)), tensor(Uint8Array.of(17, 9, 2))), [15, 237, 0]],
  ["300 ** u8", () => pow<Tensor>(300, tensor(Uint8Array.of(1, 2, 0))), [44, 144, 1]],
  ["bool from u8 on", () => clamp(tensor([true, false]), tensor(Uint8Array.of(1, 0)), null), [1, 0]],
  ["bool up to u8", () => clamp(tensor([true, false]), null, tensor(Uint8Array.of(0, 7))), [0, 0]],
  ["u8 from i32 on", () => clamp(u8(), tensor(Int32Array.of(-300, 300)), null), [200, 300]],
  ["i32 below a bound", () => clamp(i32(), null, 5), [5, -2147483648, 5]],
  ["i32 above a bound", () => clamp(i32(), -5), [2147483647, -5, 7]],
  ["i32 @ i32", () => square(100000, i).matmul(square(100000, i)), Array(4).fill(2 * 1410065408 - 2 ** 32)],
  ["i32 @ i32 beyond float32", () => row(16777217).matmul(row(1)), [16777217]],
  ["i32 @ i32 at the edges", () => row(-2147483648, 2147483647).matmul(row(-2147483648, 2147483647)), [1]],
  ["i32 @ i32 beyond 2^53", () => full([9999], 2147483647, i).matmul(full([9999], -2147483647, i)), [-9999]],
  ["u8 @ u8", () => square(200, u).matmul(square(2, u)), [32, 32, 32, 32]],
  ["u8 @ u8 beyond 2^24", () => full([999], 255, u).matmul(full([999], 255, u)), [231]],
  ["u8 @ i32", () => full([3], 200, u).matmul(row(1, 2, -4)), [-200]],
  ["i32 to u8", () => i32().to("u8"), [255, 0, 7]],
  ["floats to u8 saturate", () => tensor([300, -1, Number.NaN]).to("u8"), [255, 0, 0]],
  ["floats to i32 saturate", () => tensor([3e9, -3e9, 2.7]).to("i32"), [2147483647, -2147483648, 2]],
  ["full of a fraction", () => full([1], 2.7, { dtype: "i32" }), [2]],
])("%s", (_, run, expected) => expect([...run().dataSync()]).toEqual(expected));

it.each<[string, () => Tensor, string]>([
  ["true division gives floats", () => u8().div(2), "f32"],
  ["a fraction gives floats", () => i32().add(0.5), "f32"],
  ["u8 stays u8", () => u8().add(1), "u8"],
  ["u8 with i32 is i32", () => u8().add(tensor(Int32Array.of(1))), "i32"],
  ["sums are i32", () => u8().sum(), "i32"],
])("%s", (_, run, dtype) => expect(run().dtype).toBe(dtype));

it("products equal those that Math.imul adds up, in all orders of storage", () => {
  const generator = new Generator(3);
  const numbers = () => Int32Array.from({ length: 12 }, () => generator.nextUint32());
  const [a, b] = [numbers(), numbers()];
  for (const [transposeA, transposeB] of [
    [false, false],
    [true, false],
    [false, true],
    [true, true],
  ]) {
    const at = (x: Int32Array, transposed: boolean, [rows, columns]: [number, number], r: number, c: number) =>
      transposed ? x[c * rows + r]! : x[r * columns + c]!;
    const expected = Array.from({ length: 9 }, (_, at9) => {
      let sum = 0;
      for (let p = 0; p < 4; p++)
        sum += Math.imul(at(a, transposeA!, [3, 4], Math.floor(at9 / 3), p), at(b, transposeB!, [4, 3], p, at9 % 3));
      return sum | 0;
    });
    const A = tensor(a).reshape(transposeA ? [4, 3] : [3, 4]);
    const B = tensor(b).reshape(transposeB ? [3, 4] : [4, 3]);
    expect([...A.matmul(B, { transposeA: transposeA!, transposeB: transposeB! }).dataSync()]).toEqual(expected);
  }
});

it.each<[string, () => Tensor]>([
  ["i32 ** -1", () => i32().pow(-1)],
  ["u8 ** -2", () => u8().pow(-2)],
  ["bool ** -1", () => tensor([true]).pow(-1)],
  ["i32 ** 2^31", () => i32().pow(2 ** 31)],
  ["u8 filled with 300", () => maskedFill(u8(), tensor([true, false]), 300)],
  ["i32 filled with -Infinity", () => maskedFill(i32(), tensor([true]), Number.NEGATIVE_INFINITY)],
  ["u8 where -5", () => where(tensor([true, false]), -5, u8())],
  ["2^40 where nothing is wider", () => where(tensor([true]), 2 ** 40, 0)],
  ["the larger of u8 and 300", () => maximum(u8(), 300)],
  ["maximum of u8 and 300", () => maximum(u8(), 300)],
  ["minimum of u8 and -1", () => minimum(u8(), -1)],
  ["u8 clamped from 300 on", () => clamp(u8(), 300)],
  ["i32 clamped to 3e9", () => clamp(i32(), null, 3e9)],
  ["i32 where 2^31", () => where(tensor([true]), i32(), 2 ** 31)],
])("%s is rejected", (_, run) => expect(run).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" })));

it("u8 is clamped on one side", () => {
  expect([...clamp(u8(), 20).dataSync()]).toEqual([200, 20]);
  expect([...clamp(u8(), null, 100).dataSync()]).toEqual([100, 10]);
});

it("integers take fractions as exponents in float32", () => expect([...row(4).pow(-0.5).dataSync()]).toEqual([0.5]));

/** As integers without an end, cut to the result's dtype; of two booleans the sum is "or", the product "and". */
const EXACT: Readonly<Record<string, (a: bigint, b: bigint) => bigint>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  maximum: (a, b) => (a > b ? a : b),
  minimum: (a, b) => (a < b ? a : b),
};
const CALLS = { add, sub, mul, maximum, minimum };
const CUT: Readonly<Record<string, (value: bigint) => bigint>> = {
  bool: (value) => (value === 0n ? 0n : 1n),
  u8: (value) => BigInt.asUintN(8, value),
  i32: (value) => BigInt.asIntN(32, value),
};
const WHOLE = ["bool", "u8", "i32"] as const;
const RANGES = { bool: [0, 1], u8: [0, 255], i32: [-(2 ** 31), 2 ** 31 - 1] } as const;
const operand = (dtype: (typeof WHOLE)[number]) => {
  const [min, max] = RANGES[dtype];
  const near = fc.integer({ min: Math.max(min, -3), max: Math.min(max, 3) });
  return fc.record({
    dtype: fc.constant(dtype),
    values: fc.array(fc.oneof(near, fc.integer({ min, max })), { minLength: 1, maxLength: 5 }),
  });
};

it("arithmetic of integers is exact, modulo the range of the wider dtype; a number makes i32 of booleans", () => {
  const one = fc.oneof(...WHOLE.map(operand));
  const other = fc.oneof(...WHOLE.map(operand), fc.integer({ min: 0, max: 255 }));
  fc.assert(
    fc.property(fc.constantFrom(...Object.keys(EXACT)), one, other, fc.boolean(), (name, a, b, swaps) => {
      const isNumber = typeof b === "number";
      const wider = isNumber
        ? a.dtype === "bool"
          ? "i32"
          : a.dtype
        : WHOLE[Math.max(WHOLE.indexOf(a.dtype), WHOLE.indexOf(b.dtype))]!;
      fc.pre(wider !== "bool" || name !== "sub"); // which PyTorch rejects
      const length = isNumber ? a.values.length : Math.min(a.values.length, b.values.length);
      const x = tensor(a.values.slice(0, length), { dtype: a.dtype });
      const y = isNumber ? b : tensor(b.values.slice(0, length), { dtype: b.dtype });
      const call = CALLS[name as keyof typeof CALLS] as (x: Tensor | number, y: Tensor | number) => Tensor;
      const result = swaps ? call(y, x) : call(x, y);
      const exact = a.values.slice(0, length).map((value, i) => {
        const [p, q] = [BigInt(value), BigInt(isNumber ? b : b.values[i]!)];
        return Number(CUT[wider]!(swaps ? EXACT[name]!(q, p) : EXACT[name]!(p, q)));
      });
      expect([result.dtype, ...result.dataSync()]).toEqual([wider, ...exact]);
    }),
  );
});

it("squares wrap as products do", () =>
  fc.assert(
    fc.property(fc.constantFrom("u8" as const, "i32" as const).chain(operand), ({ dtype, values }) => {
      const x = tensor(values, { dtype });
      const squares = values.map((value) => Number(CUT[dtype]!(BigInt(value) ** 2n)));
      expect([squared(x).dtype, ...squared(x).dataSync()]).toEqual([dtype, ...squares]);
    }),
  ));
