import { expect, test } from "vitest";
import { ones } from "../../create";
import { avgPool2d } from "./average-pool";
import { maxPool2d } from "./windows";

const image = () => ones([1, 1, 4, 4]);

test.each([
  ["a window larger than the image", "BAD_SHAPE", 5, {}],
  ["one whose places do not count in 32 bits", "UNSUPPORTED", 2 ** 16, { padding: 2 ** 15 }],
  ["one whose sides do not", "UNSUPPORTED", 2 ** 31, { padding: 2 ** 30 }],
  ["no window", "BAD_ARGUMENT", 0, {}],
] as const)("pools refuse %s", (_, code, kernel, options) => {
  expect(() => maxPool2d(image(), kernel, options)).toThrow(expect.objectContaining({ code }));
  expect(() => avgPool2d(image(), kernel, options)).toThrow(expect.objectContaining({ code }));
});

test("a wide window sees the image, and padding that is as wide", async () => {
  const wide = [4096, { padding: 2048 }] as const;
  expect(maxPool2d(image(), ...wide).shape).toEqual([1, 1, 1, 1]);
  expect(await maxPool2d(image(), ...wide).data()).toEqual(Float32Array.of(1));
});
