/** Transforms of real numbers, in half the time: two of them are one complex number. */
import type { FourierBlocks, RealFourierTransform, Turns } from "../../backend/host-kernels";
import { overSamples } from "../../tensor/batching";
import { record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { byHost } from "../by-host";
import { reshape, slice } from "../shape/shape";
import { type Direction, transformed } from "./pairs";
import { transformOf } from "./transform";
import { turns } from "./turn";

/** What the spectrum of an even number of real numbers needs besides the transform of half as many. */
export interface Spectrum {
  readonly halves: Turns;
  readonly halfRe: Float64Array;
  readonly halfIm: Float64Array;
}

/** Of the latest length. */
let latest: (Spectrum & { readonly n: number }) | undefined;

/** Arrays of the spectrum of n real numbers, an even number. */
export function spectrumOf(n: number): Spectrum {
  if (latest?.n !== n) {
    const [halfRe, halfIm] = [new Float64Array(n / 2), new Float64Array(n / 2)];
    latest = { n, halves: turns(Math.floor(n / 4) + 1, n), halfRe, halfIm };
  }
  return latest;
}

/**
 * `transformed` of real numbers [..., n]: pairs [..., n, 2].
 *
 * @param x of an even n
 */
export function transformedReal(where: string, x: Tensor, direction: Direction, scale: number): Tensor {
  const samples = overSamples(transformedReal, where, x, direction, scale);
  if (samples) return samples;
  const n = x.shape.at(-1)!;
  const [output] = byHost(where, x, [[...x.shape, 2]], (given, [result], kernels) => {
    const { blocks } = transformOf(n / 2);
    for (let start = 0; start < given.length; start += n) {
      const from = (given as Float32Array).subarray(start, start + n);
      const to = (result as Float32Array).subarray(2 * start, 2 * (start + n));
      const real = { from, to, inverse: direction === "inverse", scale, ...spectrumOf(n) };
      if (blocks && kernels) kernels.realFourierTransform({ ...blocks, ...real });
      else realFourierTransform(real);
    }
  });
  return record(where, output!, [x], [], (g) => {
    const pairs = transformed(where, g, direction === "forward" ? "inverse" : "forward", scale);
    return [reshape(slice(pairs, 0, 1, -1), x.shape)];
  });
}

/** With z = x_2k + i x_(2k+1) and Z its transform, E = (Z_k + conj Z_-k) / 2 and O = (Z_k - conj Z_-k) / 2i: X_k = E + O e^(-2 pi i k / n). */
export function realFourierTransform({
  from,
  to,
  inverse,
  scale,
  halves,
  halfRe: re,
  halfIm: im,
}: Omit<RealFourierTransform, keyof FourierBlocks>): void {
  const half = re.length;
  for (let k = 0; k < half; k++) {
    re[k] = from[2 * k]!;
    im[k] = from[2 * k + 1]!;
  }
  transformOf(half)(re, im);
  const sign = inverse ? -scale : scale;
  to[0] = (re[0]! + im[0]!) * scale;
  to[1] = 0;
  to[2 * half] = (re[0]! - im[0]!) * scale;
  to[2 * half + 1] = 0;
  for (let k = 1; 2 * k <= half; k++) {
    const j = half - k;
    const evenRe = (re[k]! + re[j]!) / 2;
    const evenIm = (im[k]! - im[j]!) / 2;
    const oddRe = (im[k]! + im[j]!) / 2;
    const oddIm = (re[j]! - re[k]!) / 2;
    const c = halves.cosines[k]!;
    const s = halves.sines[k]!;
    const turnedRe = oddRe * c + oddIm * s;
    const turnedIm = oddIm * c - oddRe * s;
    write(to, k, half, (evenRe + turnedRe) * scale, (evenIm + turnedIm) * sign);
    write(to, j, half, (evenRe - turnedRe) * scale, (turnedIm - evenIm) * sign);
  }
}

/** A number, and its conjugate at the other end. */
function write(to: Float32Array, k: number, half: number, re: number, im: number): void {
  const other = 2 * (2 * half - k);
  to[2 * k] = re;
  to[2 * k + 1] = im;
  to[other] = re;
  to[other + 1] = -im;
}
