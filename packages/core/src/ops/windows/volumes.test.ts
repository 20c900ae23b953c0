// Sequences and volumes against images, of which they are made: each option.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import {
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  avgPool1d,
  avgPool2d,
  avgPool3d,
  concat,
  conv1d,
  conv2d,
  conv3d,
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
  fold,
  Generator,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  ones,
  parameter,
  rand,
  slice,
  type Tensor,
  tensor,
  unfold,
} from "../../index";

const seeded = (...shape: number[]) => rand(shape, { generator: new Generator(shape.length) });
const near = { absolute: 1e-5, relative: 1e-5 };
const same = (a: Tensor, b: Tensor) => {
  expect(a.shape).toEqual(b.shape);
  expect(a.dataSync()).toAgreeWith(b.dataSync(), near);
};

describe("volumes of one slice", () => {
  const [images, weight, bias] = [seeded(2, 4, 6, 5), seeded(4, 2, 3, 2), seeded(4)];
  const slices = images.unsqueeze(2);

  it("are convolved as images", () => {
    const options = { stride: 2, padding: [1, 0], dilation: [1, 2], groups: 2 } as const;
    const volume = { stride: [1, 2, 2], padding: [0, 1, 0], dilation: [1, 1, 2], groups: 2 } as const;
    same(conv3d(slices, weight.unsqueeze(2), bias, volume).squeeze(2), conv2d(images, weight, bias, options));
    const up = { stride: 2, padding: 1, outputPadding: 1, dilation: 1, groups: 2 } as const;
    const upVolume = {
      stride: [1, 2, 2],
      padding: [0, 1, 1],
      outputPadding: [0, 1, 1],
      dilation: 1,
      groups: 2,
    } as const;
    const out = seeded(4, 2, 2, 2);
    same(convTranspose3d(slices, out.unsqueeze(2), bias, upVolume).squeeze(2), convTranspose2d(images, out, bias, up));
  });

  it("are pooled as images", () => {
    const [options, volume] = [
      { stride: 2, padding: 1, dilation: 1 },
      { stride: [1, 2, 2], padding: [0, 1, 1], dilation: 1 },
    ] as const;
    same(
      maxPool3d(slices, [1, 3, 2], { ...volume, ceilMode: true }).squeeze(2),
      maxPool2d(images, [3, 2], { ...options, ceilMode: true }),
    );
    const [{ dilation: _, ...average }, { dilation: __, ...averages }] = [options, volume];
    for (const more of [{ countIncludePad: false }, { ceilMode: true, divisorOverride: 5 }])
      same(
        avgPool3d(slices, [1, 3, 2], { ...averages, ...more }).squeeze(2),
        avgPool2d(images, [3, 2], { ...average, ...more }),
      );
  });
});

describe("sequences", () => {
  const x = tensor([[[1, 2, 3, 4, 5]]]);

  it("are convolved with each option", () => {
    const twice = concat([x, x], 1);
    const weight = ones([2, 1, 2]);
    const options = { stride: 2, padding: 1, dilation: 2, groups: 2 };
    expect(conv1d(twice, weight, tensor([0, 10]), options).tolist()).toEqual([
      [
        [2, 6, 4],
        [12, 16, 14],
      ],
    ]);
    const longer = convTranspose1d(x, ones([1, 1, 2]), null, {
      stride: 2,
      padding: 1,
      outputPadding: 1,
      dilation: 1,
      groups: 1,
    });
    expect(longer.tolist()).toEqual([[[1, 2, 2, 3, 3, 4, 4, 5, 5]]]);
  });

  it("are pooled with each option", () => {
    expect(maxPool1d(x, 2, { stride: 2, padding: 1, dilation: 1, ceilMode: true }).tolist()).toEqual([[[1, 3, 5]]]);
    const average = { stride: 2, padding: 1, countIncludePad: false, ceilMode: true };
    expect(avgPool1d(x, 2, average).tolist()).toEqual([[[1, 2.5, 4.5]]]);
  });
});

it("fold adds what unfold has copied", () => {
  const options = { stride: 1, padding: 1, dilation: 1 };
  const counts = fold(unfold(ones([1, 1, 3, 3]), 2, options), 3, 2, options);
  expect([...counts.dataSync()]).toEqual(new Array(9).fill(4));
});

it("adaptiveMaxPool2d gives the first of equal values the gradient", () => {
  const x = parameter([
    [
      [
        [7, 7, 1],
        [7, 7, 7],
      ],
    ],
  ]);
  adaptiveMaxPool2d(x, [1, 2]).sum().backward();
  expect([...x.grad!.dataSync()]).toEqual([1, 1, 0, 0, 0, 0]);
});

it.each<["BAD_SHAPE" | "BAD_ARGUMENT", string, () => unknown]>([
  ["BAD_SHAPE", "images as volumes", () => maxPool3d(ones([1, 1, 4, 4]), 2)],
  ["BAD_ARGUMENT", "two numbers for three axes", () => avgPool3d(ones([1, 1, 4, 4, 4]), [2, 2] as never)],
  [
    "BAD_SHAPE",
    "a bias of another size",
    () => convTranspose3d(ones([1, 1, 2, 2, 2]), ones([1, 2, 1, 1, 1]), ones([3])),
  ],
  [
    "BAD_ARGUMENT",
    "as much output padding as stride",
    () => convTranspose3d(ones([1, 1, 2, 2, 2]), ones([1, 1, 1, 1, 1]), null, { outputPadding: 1 }),
  ],
  ["BAD_SHAPE", "a kernel deeper than the volume", () => conv3d(ones([1, 1, 2, 2, 2]), ones([1, 1, 3, 1, 1]))],
  ["BAD_SHAPE", "rows as sequences", () => conv1d(ones([2, 3]), ones([1, 2, 1]))],
  ["BAD_ARGUMENT", "no parts", () => adaptiveMaxPool1d(ones([1, 1, 3]), 0)],
  ["BAD_SHAPE", "columns of another kernel", () => fold(ones([1, 3, 4]), 3, 2)],
  ["BAD_ARGUMENT", "a divisor of 0", () => avgPool2d(ones([1, 1, 2, 2]), 2, { divisorOverride: 0 })],
])("rejects with %s %s", (code, _, body) => expectCode(code, body));

it("windows of two are the two slices that they reach", () => {
  const x = seeded(1, 1, 5);
  const [left, right] = [slice(x, 0, 4, 2), slice(x, 1, 5, 2)];
  expect(avgPool1d(x, 2, { stride: 1 }).dataSync()).toAgreeWith(left.add(right).div(2).dataSync(), near);
});
