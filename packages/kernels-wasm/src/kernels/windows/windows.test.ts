import type { Window2d } from "@opt/core/backend";
import "@opt/testkit";
import { describe, expect, it } from "vitest";
import { matmul } from "../of-ops";
import { input, output, runKernel, seeded } from "../run-kernel";
import { fold, unfold } from "./fold";
import { maxPool2d, maxPool2dGrad } from "./max-pool";

type Pair = [number, number];

function windowOf(
  batch: number,
  channels: number,
  [height, width]: Pair,
  kernel: Pair,
  rest: Partial<Window2d> = {},
): Window2d {
  const { stride = [1, 1], padding = [0, 0], dilation = [1, 1] } = rest;
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

const WINDOWS: [string, Window2d][] = [
  ["one pixel", windowOf(1, 1, [1, 1], [1, 1])],
  ["no image", windowOf(0, 3, [4, 4], [2, 2])],
  ["3 x 3 over 5 x 7", windowOf(2, 3, [5, 7], [3, 3])],
  ["padded", windowOf(2, 2, [6, 5], [3, 3], { padding: [1, 1] })],
  ["strided", windowOf(1, 2, [9, 11], [3, 2], { stride: [2, 3], padding: [1, 0] })],
  ["dilated", windowOf(2, 1, [12, 33], [3, 3], { dilation: [2, 4], padding: [2, 4] })],
  ["wider than the image", windowOf(1, 1, [2, 2], [4, 5], { padding: [2, 2], dilation: [1, 1] })],
  ["2 x 2 pool", windowOf(3, 5, [28, 28], [2, 2], { stride: [2, 2] })],
  ["more than 65,535 pixels", windowOf(1, 2, [211, 333], [2, 2], { stride: [2, 1], padding: [1, 1] })],
];

/** As the gradient of images reads another. */
const BACK: [string, Window2d] = [
  "back from corners",
  { ...windowOf(2, 3, [5, 7], [3, 2]), padding: [-1, 0], dilation: [-1, -1] },
];

/** Every pair of a column element and the pixel it shows, in the order of planes and taps. */
function taps(window: Window2d, visit: (column: number, pixel: number, out: number, plane: number) => void): void {
  const { height, width, outHeight, outWidth, kernel, stride, padding, dilation } = window;
  for (let plane = 0; plane < window.batch * window.channels; plane++) {
    for (let ky = 0; ky < kernel[0]; ky++) {
      for (let kx = 0; kx < kernel[1]; kx++) {
        for (let oy = 0; oy < outHeight; oy++) {
          for (let ox = 0; ox < outWidth; ox++) {
            const y = oy * stride[0] - padding[0] + ky * dilation[0];
            const x = ox * stride[1] - padding[1] + kx * dilation[1];
            const row = (plane * kernel[0] + ky) * kernel[1] + kx;
            const column = (row * outHeight + oy) * outWidth + ox;
            const isInside = y >= 0 && y < height && x >= 0 && x < width;
            if (isInside)
              visit(column, (plane * height + y) * width + x, (plane * outHeight + oy) * outWidth + ox, plane);
          }
        }
      }
    }
  }
}

const sizes = ({ batch, channels, height, width, outHeight, outWidth, kernel }: Window2d) => ({
  pixels: batch * channels * height * width,
  outputs: batch * channels * outHeight * outWidth,
  columns: batch * channels * outHeight * outWidth * kernel[0] * kernel[1],
});

describe.each(["f32", "f64"] as const)("%s windows", (dtype) => {
  it.each(WINDOWS)("unfolds: %s", (_name, window) => {
    const { pixels, columns } = sizes(window);
    const x = seeded(pixels, 1, dtype);
    const expected = seeded(columns, 1, dtype).fill(0);
    taps(window, (column, pixel) => {
      expected[column] = x[pixel]!;
    });
    const launch = { input: input(dtype, x), output: output(dtype, columns), window };
    for (const parts of [1, 3]) {
      expect(runKernel(unfold, { kind: "unfold", dtype }, launch, { parts }).output).toAgreeWith(expected);
    }
  });

  it.each([...WINDOWS, BACK])("multiplies by windows as by their columns: %s", (_name, window) => {
    const { pixels, columns } = sizes(window);
    const { batch, outHeight, outWidth } = window;
    const outPlane = outHeight * outWidth;
    const places = batch === 0 ? 0 : columns / batch / outPlane;
    const images = input(dtype, seeded(pixels, 5, dtype));
    const unfolded = runKernel(
      unfold,
      { kind: "unfold", dtype },
      { input: images, output: output(dtype, columns), window },
    );
    const turned = seeded(columns, 1, dtype).map((_, i) => {
      const [place, at] = [Math.floor(i / (batch * outPlane)), i % (batch * outPlane)];
      return unfolded.output![(Math.floor(at / outPlane) * places + place) * outPlane + (at % outPlane)]!;
    });
    const m = 13;
    for (const transposeB of [false, true]) {
      const [n, k] = transposeB ? [places, batch * outPlane] : [outPlane, places];
      const each = { batch: transposeB ? 1 : batch, m, n, k, strideA: 0 };
      const launch = { ...each, a: input(dtype, seeded(m * k, 6, dtype)), output: output(dtype, each.batch * m * n) };
      const spec = { kind: "matmul", transposeA: false, transposeB, dtype } as const;
      const plain = {
        ...launch,
        b: input(dtype, transposeB ? turned : unfolded.output!),
        strideB: transposeB ? 0 : n * k,
      };
      const { output: expected } = runKernel(matmul, spec, plain);
      const read = { ...launch, b: images, strideB: transposeB ? 0 : pixels / batch, window };
      for (const parts of [1, 3])
        expect(runKernel(matmul, { ...spec, windows: true }, read, { parts }).output).toAgreeWith(expected!);
    }
  });

  it.each(WINDOWS)("folds: %s", (_name, window) => {
    const { pixels, columns } = sizes(window);
    const x = seeded(columns, 2, dtype);
    const expected = seeded(pixels, 1, dtype).fill(0);
    taps(window, (column, pixel) => {
      expected[pixel]! += x[column]!;
    });
    const launch = { input: input(dtype, x), output: output(dtype, pixels), window };
    for (const parts of [1, 3]) {
      expect(runKernel(fold, { kind: "fold", dtype }, launch, { parts }).output).toAgreeWith(expected);
    }
  });

  it.each(WINDOWS)("pools, and sends gradients back: %s", (_name, window) => {
    const { pixels, outputs } = sizes(window);
    const x = seeded(pixels, 3, dtype).map((value) => Math.round(value * 4));
    x.forEach((_, i) => {
      if (i % 37 === 5) x[i] = Number.NaN;
      if (i % 41 === 7) x[i] = -Infinity;
    });
    const best = new Array<number>(outputs).fill(-1);
    taps(window, (_column, pixel, out) => {
      const [old, value] = [x[best[out]!]!, x[pixel]!];
      if (best[out] === -1 || value > old || Number.isNaN(value)) best[out] = pixel;
    });
    const plane = window.height * window.width;
    const launch = { input: input(dtype, x), output: output(dtype, outputs), indices: output("i32", outputs), window };
    const gradient = seeded(outputs, 4, dtype);
    const expected = seeded(pixels, 1, dtype).fill(0);
    best.forEach((pixel, out) => {
      if (pixel >= 0) expected[pixel]! += gradient[out]!;
    });
    for (const parts of [1, 3]) {
      const pooled = runKernel(maxPool2d, { kind: "maxPool2d", dtype }, launch, { parts });
      expect(Float64Array.from(pooled.output!)).toAgreeWith(Float64Array.from(best, (pixel) => x[pixel] ?? -Infinity));
      expect(pooled.indices).toAgreeWith(Int32Array.from(best, (pixel) => (pixel < 0 ? -1 : pixel % plane)));
      const indices = input("i32", pooled.indices!);
      const back = { gradient: input(dtype, gradient), indices, output: output(dtype, pixels), window };
      expect(runKernel(maxPool2dGrad, { kind: "maxPool2dGrad", dtype }, back, { parts }).output).toAgreeWith(expected);
    }
  });
});
