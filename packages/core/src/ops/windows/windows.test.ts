import { expectCode } from "@opt/testkit";
import { describe, expect, test } from "vitest";
import { arange, ones, tensor, zeros } from "../../index";
import type { Tensor } from "../../tensor/tensor";
import { adaptiveAvgPool2d, avgPool2d } from "./average-pool";
import { conv2d, convTranspose2d } from "./convolution";
import { maxPool2d, unfold } from "./windows";

const image = () => ones([1, 1, 4, 4]);

test.each([
  ["a window larger than the image", "BAD_SHAPE", 5, {}],
  ["one whose places do not count in 32 bits", "UNSUPPORTED", 2 ** 16, { padding: 2 ** 15 }],
  ["one whose sides do not", "UNSUPPORTED", 2 ** 31, { padding: 2 ** 30 }],
  ["no window", "BAD_ARGUMENT", 0, {}],
] as const)("pools reject %s", (_, code, kernel, options) => {
  expect(() => maxPool2d(image(), kernel, options)).toThrow(expect.objectContaining({ code }));
  expect(() => avgPool2d(image(), kernel, options)).toThrow(expect.objectContaining({ code }));
});

test("a wide window sees the image, and padding that is as wide", async () => {
  const wide = [4096, { padding: 2048 }] as const;
  expect(maxPool2d(image(), ...wide).shape).toEqual([1, 1, 1, 1]);
  expect(await maxPool2d(image(), ...wide).data()).toEqual(Float32Array.of(1));
});

/** PyTorch 2.13's. */
describe("of an image that counts its pixels", () => {
  const counted = (side: number) => arange(side * side, { dtype: "f32" }).reshape([1, 1, side, side]);

  test.each([
    [
      "ceilMode keeps the last, partial windows",
      () => maxPool2d(counted(5), 2, { ceilMode: true }),
      [6, 8, 9, 16, 18, 19, 21, 23, 24],
    ],
    [
      "dilation spreads a maximum's window",
      () => maxPool2d(counted(5), 2, { stride: 1, dilation: 3 }),
      [18, 19, 23, 24],
    ],
    [
      "ceilMode means over what the image has",
      () => avgPool2d(counted(5), 2, { ceilMode: true }),
      [3, 5, 6.5, 13, 15, 16.5, 20.5, 22.5, 24],
    ],
    [
      "ceilMode counts padding, and nothing beyond it",
      () => avgPool2d(counted(5), 2, { stride: 2, padding: 1, ceilMode: true }),
      [0, 0.75, 1.75, 3.75, 9, 11, 8.75, 19, 21],
    ],
    ["dilation spreads a column", () => unfold(counted(3), 2, { dilation: 2 }), [0, 2, 6, 8]],
  ])("%s", (_, run, expected) => expect([...run().dataSync()]).toEqual(expected));

  test("dilation spreads a transposed kernel", () => {
    const kernel = tensor([
      [
        [
          [1, 10],
          [100, 1000],
        ],
      ],
    ]);
    const image = tensor([
      [
        [
          [1, 2],
          [3, 4],
        ],
      ],
    ]);
    expect(convTranspose2d(image, kernel, null, { dilation: 2 }).tolist()).toEqual([
      [
        [
          [1, 2, 10, 20],
          [3, 4, 30, 40],
          [100, 200, 1000, 2000],
          [300, 400, 3000, 4000],
        ],
      ],
    ]);
  });
});

/** PyTorch 2.13's. */
describe("NaN in pools", () => {
  const [nan, inf] = [Number.NaN, Number.POSITIVE_INFINITY];
  const pooled = (rows: number[][], run: (x: Tensor) => Tensor) => {
    const x = tensor([[rows]], { requiresGrad: true });
    const y = run(x);
    y.sum().backward();
    return [[...y.dataSync()], [...x.grad!.dataSync()]];
  };

  test("of several in a window the last has the gradient", () => {
    const rows = [
      [nan, 1, nan],
      [2, nan, 0],
      [1, 1, 1],
    ];
    const pool = (x: Tensor) => maxPool2d(x, 2, { stride: 1 });
    expect(pooled(rows, pool)).toEqual([
      [nan, nan, nan, nan],
      [0, 0, 0, 0, 4, 0, 0, 0, 0],
    ]);
  });

  test("parts of different sizes share what they overlap in, nothing else", () => {
    const rows = [
      [nan, 1, 2],
      [3, 4, 5],
      [6, 7, inf],
    ];
    expect(pooled(rows, (x) => adaptiveAvgPool2d(x, 2))).toEqual([
      [nan, 3, 5, inf],
      [0.25, 0.5, 0.25, 0.5, 1, 0.5, 0.25, 0.5, 0.25],
    ]);
  });
});

/** PyTorch 2.13's, which has transposed convolutions of 64 bits alone: theirs modulo 2^32 and 2^8. */
describe("windows of integers", () => {
  const i32 = (values: number[], ...shape: number[]) => tensor(Int32Array.from(values), { shape });
  const u8 = (values: number[], ...shape: number[]) => tensor(Uint8Array.from(values), { shape });
  const image = [2147483647, -2147483648, -2147483647, 0, 1, -1, 65536, 46341, -46341, 16777217, 7, -3];
  const bytes = [255, 254, 128, 127, 1, 0, 16, 15, 200, 3, 2, 77];

  test.each<[string, () => Tensor, number[]]>([
    [
      "conv2d of i32 wraps",
      () => conv2d(i32(image, 1, 1, 3, 4), i32([7, -2147483648, 2147483647, -5], 1, 1, 2, 2)),
      [-3, 2147155969, 2147186414, -83839737, 2130706389, 458760],
    ],
    [
      "conv2d of u8 wraps",
      () => conv2d(u8(bytes, 1, 1, 3, 4), u8([255, 1, 2, 3], 1, 1, 2, 2)),
      [1, 178, 76, 152, 28, 234],
    ],
    [
      "conv2d with a bias, stride and padding",
      () =>
        conv2d(i32(image, 1, 1, 3, 4), i32([7, -2147483648, 2147483647, -5], 1, 1, 2, 2), i32([46341], 1), {
          padding: 1,
          stride: 2,
        }),
      [-2147437302, 46336, 46341, -2147205602, 2130752730, -2147112917],
    ],
    [
      "convTranspose2d of u8 wraps",
      () => convTranspose2d(u8(bytes, 1, 1, 3, 4), u8([255, 1, 2, 3], 1, 1, 2, 2), u8([200], 1)),
      [201, 201, 70, 201, 71, 197, 194, 178, 71, 84, 2, 144, 233, 203, 66, 88, 38, 213, 104, 175],
    ],
    [
      "convTranspose2d of i32 wraps",
      () => convTranspose2d(i32([2147483647, 2, 3, 4], 1, 1, 2, 2), i32([3, 1, 1, 1], 1, 1, 2, 2)),
      [2147483645, -2147483643, 2, -2147483640, -2147483632, 6, 3, 7, 4],
    ],
    ["maxPool2d keeps every digit", () => maxPool2d(i32([16777217, 1, 2, 3], 1, 1, 2, 2), 2), [16777217]],
  ])("%s", (_, run, expected) => expect([...run().dataSync()]).toEqual(expected));
});

describe("windows reject", () => {
  const image = (height: number, width: number) => zeros([1, 2, height, width]);
  const weight = ones([2, 2, 3, 3]);
  test.each<["BAD_SHAPE" | "BAD_ARGUMENT", string, (image: Tensor) => Tensor]>([
    ["BAD_SHAPE", "conv2d of a kernel that does not fit", (x) => conv2d(x, ones([1, 2, 3, 3]), null)],
    ["BAD_SHAPE", "convTranspose2d that leaves nothing", (x) => convTranspose2d(x, weight, null, { padding: 3 })],
    ["BAD_SHAPE", "maxPool2d of a kernel that does not fit", (x) => maxPool2d(x, 3)],
    ["BAD_SHAPE", "unfold of a kernel that does not fit", (x) => unfold(x, 3)],
    ["BAD_SHAPE", "avgPool2d of a kernel that does not fit", (x) => avgPool2d(x, 3)],
    // Taps are at -1 and 2 of two elements.
    ["BAD_ARGUMENT", "maxPool2d of padding alone", (x) => maxPool2d(x, 2, { padding: 1, dilation: 3 })],
  ])("%s for %s, along either axis", (code, _, run) => {
    for (const [height, width] of [
      [2, 9],
      [9, 2],
    ] as const)
      expectCode(code, () => run(image(height, width)));
    expect(run(image(9, 9)).size).toBeGreaterThan(0);
  });

  test("groups that do not divide the channels of the weight", () => {
    const odd = ones([3, 1, 3, 3]);
    expect(() => conv2d(image(4, 4), odd, null, { groups: 2 })).toThrow("[conv2d] weight must be");
    expect(() => convTranspose2d(zeros([1, 3, 4, 4]), odd, null, { groups: 2 })).toThrow(
      "[convTranspose2d] weight must be",
    );
  });

  test.each([0, 1, 3])("a bias of %d numbers for two channels", (size) => {
    const bias = ones([size]);
    expectCode("BAD_SHAPE", () => conv2d(image(4, 4), weight, bias));
    expectCode("BAD_SHAPE", () => convTranspose2d(image(4, 4), weight, bias));
  });
});
