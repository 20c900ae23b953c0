// i32 and u8 arithmetic as PyTorch's: modulo 2^32 and 2^8. The expected numbers are PyTorch's.
import { expect, it } from "vitest";
import { full, tensor } from "../create";
import { fma, less, max, min, pow, select } from "../functions";
import type { Tensor } from "../tensor/tensor";

const i32 = () => tensor(Int32Array.of(2147483647, -2147483648, 7));
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
  ["i32 ** -1", () => pow<Tensor>(tensor(Int32Array.of(7, 1, -1)), -1), [0, 1, -1]],
  ["i32 < 3e9", () => less<Tensor>(i32(), 3e9), [1, 1, 1]],
  ["i32 < 6.5", () => less<Tensor>(i32(), 6.5), [0, 1, 0]],
  ["6.5 < i32", () => less<Tensor>(6.5, i32()), [1, 0, 1]],
  ["a sum", () => i32().sum(), [6]],
  ["a sum over the edge", () => tensor(Int32Array.of(2147483647, 1)).sum(), [-2147483648]],
  ["the largest", () => i32().max(), [2147483647]],
  ["relu", () => i32().relu(), [2147483647, 0, 7]],
  ["max and min", () => max<Tensor>(min<Tensor>(i32(), 5), -5), [5, -5, 5]],
  ["a choice", () => select<Tensor>(less<Tensor>(i32(), 8), 16777217, i32()), [2147483647, 16777217, 16777217]],
  ["u8 + u8", () => u8().add(u8()), [144, 20]],
  ["u8 - u8 - 1", () => u8().sub(u8()).sub(1), [255, 255]],
  ["u8 * u8", () => u8().mul(u8()), [64, 100]],
  ["-u8", () => u8().neg(), [56, 246]],
  ["u8 + 300", () => u8().add(300), [244, 54]],
  ["u8 * 256", () => u8().mul(256), [0, 0]],
  ["u8 ** 2", () => u8().pow(2), [64, 100]],
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
