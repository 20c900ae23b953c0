// Convolutions, pools and changes of size: what they reject.
import { type AvgPool1dOptions, pad, tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import * as nn from "../index";

const images = () => zeros([1, 2, 4, 4]);

it.each<[string, "BAD_ARGUMENT" | "BAD_SHAPE", () => unknown]>([
  ["the same extents with a stride", "BAD_ARGUMENT", () => new nn.Conv2d(2, 2, 3, { padding: "same", stride: 2 })],
  ["an unknown border", "BAD_ARGUMENT", () => new nn.Conv1d(2, 2, 3, { paddingMode: "mirror" as "zeros" })],
  [
    "a border for a transposed convolution",
    "BAD_ARGUMENT",
    () => new nn.ConvTranspose1d(2, 2, 3, { paddingMode: "reflect" } as object),
  ],
  ["two numbers for three axes", "BAD_ARGUMENT", () => new nn.Conv3d(2, 2, [3, 3] as never)],
  [
    "a mirror wider than the image",
    "BAD_ARGUMENT",
    () => new nn.Conv2d(2, 2, 1, { padding: 4, paddingMode: "reflect" }).forward(images()),
  ],
  ["images for volumes", "BAD_SHAPE", () => new nn.Conv3d(2, 2, 3).forward(zeros([4, 4]))],
  ["size and scale", "BAD_ARGUMENT", () => new nn.Upsample({ size: 2, scaleFactor: 2 })],
  ["neither", "BAD_ARGUMENT", () => new nn.Upsample({})],
  ["corners of nearest elements", "BAD_ARGUMENT", () => new nn.Upsample({ size: 2, alignCorners: true })],
  ["a mode for other axes", "BAD_SHAPE", () => nn.interpolate(images(), { size: 2, mode: "linear" })],
  ["sizes for other axes", "BAD_SHAPE", () => nn.interpolate(images(), { size: [2, 2, 2] })],
  ["a result without elements", "BAD_SHAPE", () => nn.interpolate(images(), { scaleFactor: 0.1 })],
  ["channels that do not divide", "BAD_SHAPE", () => new nn.PixelShuffle(2).forward(images())],
  ["sizes that do not fit", "BAD_SHAPE", () => new nn.Unflatten(1, [3, -1]).forward(images())],
  ["an axis that is not there", "BAD_SHAPE", () => new nn.Unflatten(4, [1]).forward(images())],
  ["a negative border of a mode", "BAD_ARGUMENT", () => pad(zeros([3]), [-1, 1], { mode: "circular" })],
])("rejects %s", (_, code, body) => expectCode(code, body));

it("pads more than one axis by itself", () => {
  const x = tensor([
    [1, 2],
    [3, 4],
  ]);
  expect([...pad(x, [1, 0, 0, 1], { mode: "replicate" }).dataSync()]).toEqual([1, 1, 2, 3, 3, 4, 3, 3, 4]);
  const same = pad(x, [0, 0], { mode: "circular" });
  same.dispose();
  expect([...x.dataSync()]).toEqual([1, 2, 3, 4]);
});

it("counts padding in averages, but not what lies beyond it", () => {
  const average = (options: AvgPool1dOptions) => [
    ...new nn.AvgPool1d(2, options).forward(tensor([[1, 2, 3]])).dataSync(),
  ];
  expect(average({ padding: 1 })).toEqual([0.5, 2.5]);
  expect(average({ padding: 1, countIncludePad: false })).toEqual([1, 2.5]);
  expect(average({ ceilMode: true })).toEqual([1.5, 3]);
});

it("steps by the scale that it is given, as PyTorch", () => {
  const squares = tensor([[[1, 4, 9, 16, 25, 36, 49]]]);
  const values = (mode: "linear" | "nearest") => nn.interpolate(squares, { scaleFactor: 0.65, mode }).dataSync();
  expect(values("nearest")).toEqual(Float32Array.of(1, 4, 16, 25));
  expect(values("linear")).toAgreeWith([1.807692289352417, 8.038461685180664, 19.115386962890625, 34.730770111083984], {
    relative: 1e-6,
    absolute: 0,
  });
});
