/** Products of a weight and the windows of images, and their gradients. A device with `Backend.windows` reads windows where they lie; others unfold them. */
import type { Window2d } from "../../backend/spec";
import { tidy } from "../../device/scope";
import { overSamples } from "../../tensor/batching";
import { type Backward, noGrad, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import type { MapDType } from "../../values/dtype";
import { matmul } from "../matmul";
import { permute, reshape } from "../shape/shape";
import { windows } from "./windows";

/** Of each image [batch, channels, height, width]: weight [outChannels, channels, ...kernel] times its windows, [batch, outChannels, outHeight, outWidth]. */
export function convolve(x: Tensor, weight: Tensor, given: Window2d): Tensor {
  const samples = overSamples(convolve, x, weight, given);
  if (samples) return samples;
  const window = { ...given, batch: x.shape[0]! }; // samples of `vmap` are images, too
  const output = noGrad(() => tidy(() => products(x, weight, window)));
  const saved: Tensor[] = [];
  if (weight.requiresGrad) saved.push(x);
  if (x.requiresGrad) saved.push(weight);
  const backward: Backward = (g, held, [needsImages, needsWeight]) => [
    needsImages ? imagesGradient(g, held.at(-1)!, window) : null,
    needsWeight ? weightGradient(g, held[0]!, window) : null,
  ];
  return record("convolve", output, [x, weight], saved, backward);
}

function products(x: Tensor, weight: Tensor, window: Window2d): Tensor {
  const { batch, outHeight, outWidth } = window;
  const [m, n, k] = [weight.shape[0]!, outHeight * outWidth, ofWindow(window)];
  const shape = [batch, m, outHeight, outWidth];
  if (isRead(x, window))
    return launch(weight, x, Tensor.empty(shape, x.dtype, x.device), window, false, { batch, m, n, k });
  return reshape(matmul(reshape(weight, [m, k]), columnsOf(x, window)), shape);
}

/** Windows of single pixels are the image. */
const isImage = ({ kernel, stride, padding }: Window2d) =>
  [...kernel, ...stride].every((extent) => extent === 1) && padding.every((extent) => extent === 0);

/** True where the device reads windows from the images. */
const isRead = (x: Tensor, window: Window2d) => x.device.backend.windows !== undefined && !isImage(window);

/** [batch, places in a window, windows]. */
function columnsOf(x: Tensor, window: Window2d): Tensor {
  const { batch, outHeight, outWidth } = window;
  return isImage(window) ? reshape(x, [batch, ofWindow(window), outHeight * outWidth]) : windows("unfold", x, window);
}

/** Of all images, one product: gradient [batch, outChannels, outHeight, outWidth] times each image's windows. */
function weightGradient(g: Tensor, x: Tensor, window: Window2d): Tensor {
  const samples = overSamples(weightGradient, g, x, window);
  if (samples) return samples;
  const output = noGrad(() => tidy(() => productsOfAll(g, x, window)));
  const saved: Tensor[] = [];
  if (x.requiresGrad) saved.push(g);
  if (g.requiresGrad) saved.push(x);
  return record("convolveWeight", output, [g, x], saved, (v, held, [needsGradient, needsImages]) => [
    needsGradient ? convolve(held.at(-1)!, v, window) : null,
    needsImages ? imagesGradient(held[0]!, v, window) : null,
  ]);
}

function productsOfAll(g: Tensor, x: Tensor, window: Window2d): Tensor {
  const { batch, channels, kernel } = window;
  const [m, n, k] = [g.shape[1]!, ofWindow(window), batch * window.outHeight * window.outWidth];
  const shape = [m, channels, ...kernel];
  const isDirect = x.device.backend.windows === "both";
  const rows = isDirect ? g : reshape(permute(g, [1, 0, 2, 3]), [m, k]);
  if (isDirect || isRead(x, window))
    return launch(rows, x, Tensor.empty(shape, x.dtype, x.device), window, true, { batch: 1, m, n, k });
  const columns = reshape(permute(columnsOf(x, window), [1, 0, 2]), [n, k]);
  return reshape(matmul(rows, columns, { transposeB: true }), shape);
}

/** Fewer channels leave most of a product's tiles idle. */
const FEWEST_CHANNELS = 8;

/** The adjoint of the windows: the sums of where they overlap, or without strides the same weights times the gradient's windows, which go the other way. */
function imagesGradient(g: Tensor, weight: Tensor, window: Window2d): Tensor {
  const { batch, channels, height, width, outHeight, outWidth, stride, padding, dilation } = window;
  const m = weight.shape[0]!;
  return tidy(() => {
    if (stride[0] > 1 || stride[1] > 1 || channels < FEWEST_CHANNELS) {
      const rows = reshape(weight, [m, ofWindow(window)]);
      const columns = matmul(rows, reshape(g, [batch, m, outHeight * outWidth]), { transposeA: true });
      return windows("fold", columns, window);
    }
    const extents = { batch, channels: m, height: outHeight, width: outWidth, outHeight: height, outWidth: width };
    const back = { padding: [-padding[0], -padding[1]], dilation: [-dilation[0], -dilation[1]] } as const;
    return convolve(g, permute(weight, [1, 0, 2, 3]), { ...window, ...extents, ...back });
  });
}

/** Elements of a window of all channels. */
const ofWindow = ({ channels, kernel }: Window2d) => channels * kernel[0] * kernel[1];

interface Extents {
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

function launch(a: Tensor, x: Tensor, output: Tensor, window: Window2d, transposeB: boolean, extents: Extents): Tensor {
  const dtype = x.dtype as MapDType;
  x.device.launch({
    kind: "matmul",
    kernel: x.device.kernel({ kind: "matmul", transposeA: false, transposeB, windows: true, dtype }),
    a: a.memorySlice(),
    b: x.memorySlice(),
    output: output.memorySlice(),
    ...extents,
    strideA: transposeB && x.device.backend.windows === "both" ? extents.m * window.outHeight * window.outWidth : 0,
    strideB: transposeB ? 0 : window.channels * window.height * window.width,
    window,
  });
  return output;
}
