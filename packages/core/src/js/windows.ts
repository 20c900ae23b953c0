/** Sliding windows over images: unfold, fold and max pooling. */
import type { LaunchArguments, Window2d } from "../backend/spec";
import type { ComputeDType } from "../values/dtype";
import { elements } from "./memory";

/** Visits every (plane, kernel position, output position) whose input pixel is not padding. */
function forEachTap(window: Window2d, visit: (plane: number, tap: number, outAt: number, inAt: number) => void): void {
  const { batch, channels, height, width, outHeight, outWidth, kernel, stride, padding, dilation } = window;
  for (let plane = 0; plane < batch * channels; plane++) {
    for (let tap = 0; tap < kernel[0] * kernel[1]; tap++) {
      const offsetY = Math.floor(tap / kernel[1]) * dilation[0] - padding[0];
      const offsetX = (tap % kernel[1]) * dilation[1] - padding[1];
      for (let outY = 0; outY < outHeight; outY++) {
        const y = outY * stride[0] + offsetY;
        if (y < 0 || y >= height) continue;
        for (let outX = 0; outX < outWidth; outX++) {
          const x = outX * stride[1] + offsetX;
          if (x >= 0 && x < width) visit(plane, tap, outY * outWidth + outX, y * width + x);
        }
      }
    }
  }
}

/** Columns of one plane are consecutive: (channel, tap) is the row of the unfolded matrix. */
export function unfold(dtype: ComputeDType, { input, output, window }: LaunchArguments["unfold"]): void {
  const image = elements(input, dtype);
  const columns = elements(output, dtype).fill(0);
  const plane = window.height * window.width;
  const taps = window.kernel[0] * window.kernel[1];
  const outPlane = window.outHeight * window.outWidth;
  forEachTap(window, (p, tap, outAt, inAt) => {
    columns[(p * taps + tap) * outPlane + outAt] = image[p * plane + inAt]!;
  });
}

export function fold(dtype: ComputeDType, { input, output, window }: LaunchArguments["fold"]): void {
  const columns = elements(input, dtype);
  const image = elements(output, dtype).fill(0);
  const plane = window.height * window.width;
  const taps = window.kernel[0] * window.kernel[1];
  const outPlane = window.outHeight * window.outWidth;
  forEachTap(window, (p, tap, outAt, inAt) => {
    image[p * plane + inAt]! += columns[(p * taps + tap) * outPlane + outAt]!;
  });
}

export function maxPool2d(dtype: ComputeDType, launch: LaunchArguments["maxPool2d"]): void {
  const { window } = launch;
  const image = elements(launch.input, dtype);
  const largest = elements(launch.output, dtype);
  const indices = elements(launch.indices, "i32").fill(-1);
  const plane = window.height * window.width;
  const outPlane = window.outHeight * window.outWidth;
  forEachTap(window, (p, _tap, outAt, inAt) => {
    const at = p * outPlane + outAt;
    const value = image[p * plane + inAt]!;
    if (indices[at] === -1 || value > largest[at]! || Number.isNaN(value)) {
      largest[at] = value;
      indices[at] = inAt;
    }
  });
}

export function maxPool2dGrad(dtype: ComputeDType, launch: LaunchArguments["maxPool2dGrad"]): void {
  const { window } = launch;
  const gradient = elements(launch.gradient, dtype);
  const indices = elements(launch.indices, "i32");
  const out = elements(launch.output, dtype).fill(0);
  const plane = window.height * window.width;
  const outPlane = window.outHeight * window.outWidth;
  for (let at = 0; at < gradient.length; at++) out[Math.floor(at / outPlane) * plane + indices[at]!]! += gradient[at]!;
}
