// The expected values are PyTorch's.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { all, any, type DType, flatten, parameter, round, type Tensor, tensor, zeros } from "../index";

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

describe("round", () => {
  it.each<[DType, number[], number[]]>([
    ["f32", [0.5, 1.5, 2.5, -0.5, -1.5, -0.3, 0.49999997, 0, -0], [0, 2, 2, -0, -2, -0, 0, 0, -0]],
    [
      "f32",
      [8388609, 8388607.5, -4194304.5, 1e30, inf, -inf, nan],
      [8388609, 8388608, -4194304, Math.fround(1e30), inf, -inf, nan],
    ],
    [
      "f64",
      [8388607.5, 16777217, 2 ** 52 + 1, 2.5, -0.5, 0.49999999999999994],
      [8388608, 16777217, 2 ** 52 + 1, 2, -0, 0],
    ],
    ["bf16", [2.5, -0.5, 129], [2, -0, 129]],
    ["f16", [2.5, 1023.5, -inf], [2, 1024, -inf]],
    ["i32", [2147483647, -3], [2147483647, -3]],
  ])("of %s takes the even one of two as near", (dtype, values, expected) => {
    const result = round(tensor(values, { dtype }));
    expect([result.dtype, ...result.dataSync()]).toEqual([dtype, ...expected]);
  });

  it("has the gradient 0, also of an infinite one", () => {
    const x = parameter([0.3, inf, nan]);
    round(x).backward(tensor([1, inf, 2]));
    expect([...x.grad!.dataSync()]).toEqual([0, 0, 0]);
  });

  it("rejects booleans", () => expectCode("BAD_DTYPE", () => round(tensor([true]))));
});

describe("any and all", () => {
  it.each<[string, Tensor, boolean, boolean]>([
    ["NaN", tensor([nan]), true, true],
    ["-0 and 1", tensor([-0, 1]), true, false],
    ["what is small", tensor([1e-45, 1e-45]), true, true],
    ["zeros", zeros([3]), false, false],
    ["nothing", zeros([0]), false, true],
    ["256 bytes of 1", tensor(new Uint8Array(256).fill(1)), true, true],
  ])("of %s", (_, x, some, every) => {
    expect([any(x), all(x)].map(({ dtype, shape }) => [dtype, shape])).toEqual([
      ["bool", []],
      ["bool", []],
    ]);
    expect([any(x).dataSync()[0], all(x).dataSync()[0]]).toEqual([Number(some), Number(every)]);
  });

  it("go along axes", () => {
    const x = tensor([
      [
        [0, 0],
        [1, 0],
      ],
      [
        [1, 1],
        [0, 2],
      ],
    ]);
    expect([any(x, 1), all(x, [0, 2]), any(x, 2, true)].map((result) => result.tolist())).toEqual([
      [
        [true, false],
        [true, true],
      ],
      [false, false],
      [
        [[false], [true]],
        [[true], [true]],
      ],
    ]);
    expect([...any(zeros([2, 0]), 1).dataSync(), ...all(zeros([2, 0]), 1).dataSync()]).toEqual([0, 0, 1, 1]);
    expectCode("BAD_ARGUMENT", () => any(x, 3));
  });
});

describe("flatten", () => {
  it.each<[number[], number | undefined, number | undefined, number[]]>([
    [[], undefined, undefined, [1]],
    [[2, 3, 4], undefined, undefined, [24]],
    [[2, 3, 4], 1, undefined, [2, 12]],
    [[2, 3, 4], 0, 1, [6, 4]],
    [[2, 3, 4], -2, -2, [2, 3, 4]],
    [[2, 0, 4], -2, -1, [2, 0]],
  ])("%j from %s to %s is %j", (shape, start, end, expected) => {
    expect(flatten(zeros(shape), start, end).shape).toEqual(expected);
  });

  it("is a view, through which gradients flow", () => {
    const x = parameter([
      [1, 2],
      [3, 4],
    ]);
    flatten(x).backward(tensor([1, 2, 3, 4]));
    expect([...x.grad!.dataSync()]).toEqual([1, 2, 3, 4]);
  });

  it.each([
    [3, -1],
    [0, 3],
    [1, 0],
    [0.5, -1],
  ])("rejects %s to %s", (start, end) => {
    expectCode("BAD_ARGUMENT", () => flatten(zeros([2, 3, 4]), start, end));
  });
});
