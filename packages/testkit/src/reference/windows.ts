/** Sliding windows in float64, written from the output's side: each output looks up its inputs. */
import type { Window2d } from "@opt/core/backend";

/** The pixel (within its plane) that tap `tap` of output `at` reads, or -1 in the padding. */
function pixelOf(window: Window2d, tap: number, at: number): number {
  const { height, width, outWidth, kernel, stride, padding, dilation } = window;
  const y = Math.floor(at / outWidth) * stride[0] + Math.floor(tap / kernel[1]) * dilation[0] - padding[0];
  const x = (at % outWidth) * stride[1] + (tap % kernel[1]) * dilation[1] - padding[1];
  return y >= 0 && y < height && x >= 0 && x < width ? y * width + x : -1;
}

export function windowSizes(window: Window2d) {
  const { batch, channels, height, width, outHeight, outWidth, kernel } = window;
  const planes = batch * channels;
  const taps = kernel[0] * kernel[1];
  return { planes, taps, plane: height * width, outPlane: outHeight * outWidth };
}

/** [batch, channels, H, W] to [batch, channels * taps, outH * outW]. */
export function unfold(image: ArrayLike<number>, window: Window2d): Float64Array {
  const { planes, taps, plane, outPlane } = windowSizes(window);
  return new Float64Array(planes * taps * outPlane).map((_, i) => {
    const at = i % outPlane;
    const tap = Math.floor(i / outPlane) % taps;
    const pixel = pixelOf(window, tap, at);
    return pixel < 0 ? 0 : image[Math.floor(i / (outPlane * taps)) * plane + pixel]!;
  });
}

/** The adjoint: every pixel collects the columns that read it. */
export function fold(columns: ArrayLike<number>, window: Window2d): Float64Array {
  const { planes, taps, plane, outPlane } = windowSizes(window);
  const image = new Float64Array(planes * plane);
  for (let i = 0; i < planes * taps * outPlane; i++) {
    const pixel = pixelOf(window, Math.floor(i / outPlane) % taps, i % outPlane);
    if (pixel >= 0) image[Math.floor(i / (outPlane * taps)) * plane + pixel]! += columns[i]!;
  }
  return image;
}

/** The largest value of each window, the first of equals or the last NaN, and its pixel. */
export function maxPool2d(image: ArrayLike<number>, window: Window2d) {
  const { planes, taps, plane, outPlane } = windowSizes(window);
  const output = new Float64Array(planes * outPlane);
  const indices = new Int32Array(planes * outPlane);
  for (let i = 0; i < output.length; i++) {
    const start = Math.floor(i / outPlane) * plane;
    let best = -1;
    for (let tap = 0; tap < taps; tap++) {
      const pixel = pixelOf(window, tap, i % outPlane);
      if (pixel < 0) continue;
      const value = image[start + pixel]!;
      if (best < 0 || Number.isNaN(value) || value > image[start + best]!) best = pixel;
    }
    indices[i] = best;
    output[i] = image[start + best]!;
  }
  return { output, indices };
}

export function maxPool2dGrad(gradient: ArrayLike<number>, indices: ArrayLike<number>, window: Window2d): Float64Array {
  const { planes, plane, outPlane } = windowSizes(window);
  const image = new Float64Array(planes * plane);
  for (let i = 0; i < planes * outPlane; i++) image[Math.floor(i / outPlane) * plane + indices[i]!]! += gradient[i]!;
  return image;
}
