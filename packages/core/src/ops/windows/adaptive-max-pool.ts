/** The largest values of as many parts of images as are asked for. */
import { check } from "../../errors/errors";
import type { Tensor } from "../../tensor/tensor";
import { showShape } from "../../values/shape";
import { defineFunction } from "../define-function";
import { type OutputSize2d, outputSizeOf, partsOf } from "./parts";
import { type AxisTaps, resample } from "./resample";
import { maxPool2d } from "./windows";

/**
 * The largest values of parts of images, as many along each axis as `outputSize` says: part i of n begins at floor(i size / n) and ends
 * before ceil((i + 1) size / n). null keeps an extent. Of equal values the first has the gradient.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED for more than 2^24 parts
 * @example
 * adaptiveMaxPool2d(rand([1, 3, 8, 6]), 1); // [1, 3, 1, 1]
 */
export const adaptiveMaxPool2d = /* @__PURE__ */ defineFunction(
  {
    name: "adaptiveMaxPool2d",
    torch: "F.adaptive_max_pool2d(a, (3, None))",
    tensors: ["nm57"],
    arguments: [[3, null]],
  },
  (x: Tensor, outputSize: OutputSize2d): Tensor => {
    const where = "adaptiveMaxPool2d";
    check(
      x.shape.length === 4 && !x.shape.slice(1).includes(0),
      "BAD_SHAPE",
      where,
      () => `images must be [batch, channels, height, width] with pixels, got ${showShape(x.shape)}.`,
      "Reshape them.",
    );
    const counts = outputSizeOf(where, x, outputSize);
    const parts = counts.map((count, axis) => tapsOf(x.shape[2 + axis]!, count));
    const kernel = parts.map(({ most }) => most) as [number, number];
    const isEven = parts.every(({ isEven }) => isEven);
    const images = isEven
      ? x
      : resample(
          x,
          parts.map(({ taps }) => taps),
        );
    return maxPool2d(images, kernel);
  },
);

/** Which elements the parts have, all as many as the longest: shorter ones repeat their last one, which changes no maximum. */
function tapsOf(size: number, count: number) {
  const { most, at, last } = partsOf(size, count);
  const indices = Array.from({ length: count * most }, (_, i) => {
    const part = Math.floor(i / most);
    const place = at(part, i % most);
    return [place < 0 ? last(part) : place];
  });
  const taps: AxisTaps = { indices, weights: indices.map(() => [1]) };
  return { most, isEven: size % count === 0, taps };
}
