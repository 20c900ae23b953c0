/** Sliding windows: unfold and fold, max pooling and its gradient. */
import type { Window2d } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { matmul } from "../reference/matmul";
import * as reference from "../reference/windows";
import type { ContractContext } from "./context";
import "../numbers/matcher";

type Pair = readonly [number, number];

/** A window over [batch, channels, height, width] with the output size that PyTorch gives it. */
export function windowOf(
  [batch, channels, height, width]: readonly [number, number, number, number],
  kernel: Pair,
  stride: Pair = [1, 1],
  padding: Pair = [0, 0],
  dilation: Pair = [1, 1],
): Window2d {
  const out = (size: number, axis: 0 | 1) =>
    Math.floor((size + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) / stride[axis]) + 1;
  return {
    batch,
    channels,
    height,
    width,
    outHeight: out(height, 0),
    outWidth: out(width, 1),
    kernel,
    stride,
    padding,
    dilation,
  };
}

const WINDOWS: readonly { readonly name: string; readonly window: Window2d }[] = [
  { name: "one pixel", window: windowOf([1, 1, 1, 1], [1, 1]) },
  { name: "3 x 3", window: windowOf([2, 3, 7, 9], [3, 3]) },
  { name: "padded", window: windowOf([1, 2, 5, 6], [3, 3], [1, 1], [1, 1]) },
  { name: "2 x 2 apart, as pools", window: windowOf([3, 2, 8, 10], [2, 2], [2, 2]) },
  {
    name: "2 x 2 apart, past the last row and column",
    window: { ...windowOf([2, 2, 7, 37], [2, 2], [2, 2]), outHeight: 4, outWidth: 19 },
  },
  { name: "padded and apart, in rows of several vectors", window: windowOf([2, 2, 7, 45], [3, 3], [2, 2], [1, 1]) },
  { name: "strided with rows left over", window: windowOf([1, 3, 11, 8], [3, 2], [2, 3]) },
  { name: "dilated", window: windowOf([2, 1, 9, 11], [3, 3], [1, 2], [2, 1], [2, 3]) },
  { name: "of uneven everything", window: windowOf([1, 2, 6, 13], [4, 5], [3, 2], [2, 1], [1, 2]) },
  { name: "as large as the image", window: windowOf([2, 2, 5, 4], [5, 4]) },
  { name: "as many as pixels", window: windowOf([2, 2, 6, 40], [3, 5], [1, 1], [1, 2]) },
  { name: "as many as pixels in a row, dilated", window: windowOf([2, 3, 9, 18], [3, 3], [1, 1], [0, 2], [2, 2]) },
  // A vector of windows each, of 4, 8 or 16 lanes.
  ...[[2, 2] as const, [2, 4] as const, [4, 4] as const].map(([height, width]) => ({
    name: `in images of ${height} x ${width}`,
    window: windowOf([5, 3, height, width], [3, 3], [1, 1], [1, 1]),
  })),
  { name: "over many pixels", window: windowOf([1, 1, 260, 259], [2, 3], [1, 1], [1, 1]) },
  { name: "over many planes", window: windowOf([9, 7351, 2, 2], [2, 1]) },
  { name: "of an empty batch", window: windowOf([0, 3, 4, 4], [2, 2]) },
];

/** As the gradient of images reads another: taps go back from a corner. */
const BACK = {
  name: "that go back",
  window: {
    ...windowOf([2, 3, 5, 7], [3, 2]),
    outHeight: 5,
    outWidth: 6,
    padding: [-1, 0],
    dilation: [-1, -1],
  } satisfies Window2d,
};

const dot = (a: ArrayLike<number>, b: ArrayLike<number>) => Array.from(a).reduce((sum, x, i) => sum + x * b[i]!, 0);

export function windowsContract(context: ContractContext): void {
  const { dtype, specials, tolerances } = context;
  // Where a step rounds twice, it may overflow where a fused one does not.
  const ofProduct = { specials: specials && context.portable };
  const productTolerance = (magnitude: number) => (context.portable ? "bits" : context.sumTolerance(magnitude));

  describe.each([...context.sample(WINDOWS), BACK])("windows: $name", ({ window }) => {
    const { planes, taps, plane, outPlane } = reference.windowSizes(window);

    it("unfold", async () => {
      const input = context.seeded(planes * plane, 1, { specials });
      const expected = reference.unfold(input, window);
      await context.check(
        { kind: "unfold", dtype },
        { input: { input }, output: { output: context.empty(planes * taps * outPlane) } },
        (slices) => ({ ...slices, window }),
        ({ output }, label) => expect(output, label).toAgreeWith(expected, tolerances.map),
      );
    });

    const { channels, batch } = window;
    const [m, ofImage] = [7, channels * taps];
    it("products with the windows of each image", async ({ skip }) => {
      skip(!context.backend.windows, "the device unfolds windows");
      const [a, b] = [context.seeded(m * ofImage, 8), context.seeded(planes * plane, 9, ofProduct)];
      const sizes = { batch, m, n: outPlane, k: ofImage, strideA: 0 };
      const columns = reference.unfold(b, window);
      const transposes = { transposeA: false, transposeB: false };
      const { product, magnitude } = matmul(
        a,
        columns,
        { ...sizes, ...transposes, strideB: ofImage * outPlane },
        dtype,
      );
      await context.check(
        { kind: "matmul", ...transposes, windows: true, dtype },
        { input: { a, b }, output: { output: context.empty(batch * m * outPlane) } },
        (slices) => ({ ...slices, ...sizes, strideB: channels * plane, window }),
        ({ output }, label) => expect(output, label).toAgreeWith(product, productTolerance(magnitude)),
      );
    });

    it("a product along the windows of all images", async ({ skip }) => {
      skip(!context.backend.windows, "the device unfolds windows");
      const k = batch * outPlane;
      const [a, b] = [context.seeded(m * k, 10), context.seeded(planes * plane, 11, ofProduct)];
      const byImage = a.slice();
      for (const i of a.keys()) {
        const [row, image, at] = [Math.floor(i / k), Math.floor((i % k) / outPlane), i % outPlane];
        byImage[(image * m + row) * outPlane + at] = a[i]!;
      }
      const columns = reference.unfold(b, window);
      const turned = context.empty(columns.length);
      for (let i = 0; i < columns.length; i++) {
        const [image, place, at] = [
          Math.floor(i / (ofImage * outPlane)),
          Math.floor(i / outPlane) % ofImage,
          i % outPlane,
        ];
        turned[place * k + image * outPlane + at] = columns[i]!;
      }
      const sizes = { batch: 1, m, n: ofImage, k, strideA: 0, strideB: 0 };
      const transposes = { transposeA: false, transposeB: true };
      const { product, magnitude } = matmul(a, turned, { ...sizes, ...transposes }, dtype);
      await context.check(
        { kind: "matmul", ...transposes, windows: true, dtype },
        {
          input: { a: context.backend.windows === "both" ? byImage : a, b },
          output: { output: context.empty(m * ofImage) },
        },
        (slices) => ({
          ...slices,
          ...sizes,
          ...(context.backend.windows === "both" && { strideA: m * outPlane }),
          window,
        }),
        ({ output }, label) => expect(output, label).toAgreeWith(product, productTolerance(magnitude)),
      );
    });
  });

  describe.each(context.sample(WINDOWS))("windows: $name", ({ window }) => {
    const { planes, taps, plane, outPlane } = reference.windowSizes(window);

    it("fold", async () => {
      const input = context.seeded(planes * taps * outPlane, 2);
      const expected = reference.fold(input, window);
      await context.check(
        { kind: "fold", dtype },
        { input: { input }, output: { output: context.empty(planes * plane) } },
        (slices) => ({ ...slices, window }),
        ({ output }, label) => expect(output, label).toAgreeWith(expected, context.sumTolerance(8 * taps)),
      );
    });

    it("unfold and fold are adjoint: <unfold x, y> = <x, fold y>", async () => {
      const x = context.seeded(planes * plane, 3);
      const y = context.seeded(planes * taps * outPlane, 4);
      const columns: number[] = [];
      await context.check(
        { kind: "unfold", dtype },
        { input: { input: x }, output: { output: context.empty(y.length) } },
        (slices) => ({ ...slices, window }),
        ({ output }) => columns.push(dot(output, y)),
      );
      const tolerance = context.sumTolerance(64 * Math.sqrt(y.length * taps));
      await context.check(
        { kind: "fold", dtype },
        { input: { input: y }, output: { output: context.empty(x.length) } },
        (slices) => ({ ...slices, window }),
        ({ output }, label) => expect(dot(output, x), label).toAgreeWith(columns[0]!, tolerance),
      );
    });

    it("maxPool2d", async () => {
      const input = context.seeded(planes * plane, 5, { specials });
      const expected = reference.maxPool2d(input, window);
      await context.check(
        { kind: "maxPool2d", dtype },
        {
          input: { input },
          output: { output: context.empty(planes * outPlane), indices: new Int32Array(planes * outPlane) },
        },
        (slices) => ({ ...slices, window }),
        ({ output, indices }, label) => {
          expect(indices, `indices, ${label}`).toAgreeWith(expected.indices);
          expect(output, label).toAgreeWith(expected.output, tolerances.map);
        },
      );
    });

    it("maxPool2d of equal values takes the first, and padding never wins", async () => {
      const input = context.empty(planes * plane).fill(-3);
      const { indices: expected } = reference.maxPool2d(input, window);
      await context.check(
        { kind: "maxPool2d", dtype },
        {
          input: { input },
          output: { output: context.empty(planes * outPlane), indices: new Int32Array(planes * outPlane) },
        },
        (slices) => ({ ...slices, window }),
        ({ output, indices }, label) => {
          expect(indices, `indices, ${label}`).toAgreeWith(expected);
          expect(output, label).toAgreeWith(new Array(planes * outPlane).fill(-3));
        },
      );
    });

    it("maxPool2dGrad", async () => {
      const { indices } = reference.maxPool2d(context.seeded(planes * plane, 6), window);
      const gradient = context.seeded(planes * outPlane, 7);
      const expected = reference.maxPool2dGrad(gradient, indices, window);
      await context.check(
        { kind: "maxPool2dGrad", dtype },
        { input: { gradient, indices }, output: { output: context.empty(planes * plane) } },
        (slices) => ({ ...slices, window }),
        ({ output }, label) => expect(output, label).toAgreeWith(expected, context.sumTolerance(8 * taps)),
      );
    });
  });
}
