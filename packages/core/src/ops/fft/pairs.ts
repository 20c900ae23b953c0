/** Transforms of complex numbers as pairs of f32: [..., n, 2]. Everything around them is made of ops on real numbers. */
import type { FourierTransform } from "../../backend/host-kernels";
import { overSamples } from "../../tensor/batching";
import { type Backward, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { byHost } from "../by-host";
import { transformOf } from "./transform";

/** e^(-2 pi i j k / n), or e^(2 pi i j k / n). */
export type Direction = "forward" | "inverse";

/** The sums of x_j e^(-+ 2 pi i j k / n), times `scale`, along the last axis but one: computed in float64, and rounded once. */
export function transformed(where: string, x: Tensor, direction: Direction, scale: number): Tensor {
  const samples = overSamples(transformed, where, x, direction, scale);
  if (samples) return samples;
  const n = x.shape.at(-2)!;
  const [output] = byHost(where, x, [x.shape], (given, [result], kernels) => {
    const { blocks } = transformOf(n);
    const isNative = blocks !== undefined && kernels !== undefined;
    const [re, im] = [new Float64Array(isNative ? 0 : n), new Float64Array(isNative ? 0 : n)];
    for (let start = 0; start < given.length; start += 2 * n) {
      const [from, to] = [given, result!].map((all) => (all as Float32Array).subarray(start, start + 2 * n));
      const pairs = { from: from!, to: to!, inverse: direction === "inverse", scale };
      if (isNative) kernels.fourierTransform({ ...blocks, ...pairs });
      else transformPairs(pairs, re, im);
    }
  });
  return record(where, output!, [x], [], adjoint(where, direction, scale));
}

function transformPairs(
  { from, to, inverse, scale }: Pick<FourierTransform, "from" | "to" | "inverse" | "scale">,
  re: Float64Array,
  im: Float64Array,
): void {
  const transform = transformOf(re.length);
  for (let k = 0; k < re.length; k++) {
    re[k] = from[2 * k]!;
    im[k] = from[2 * k + 1]!;
  }
  if (inverse) transform(im, re);
  else transform(re, im);
  for (let k = 0; k < re.length; k++) {
    to[2 * k] = re[k]! * scale;
    to[2 * k + 1] = im[k]! * scale;
  }
}

export function fourierTransform(given: FourierTransform): void {
  const n = given.rows * given.columns;
  transformPairs(given, new Float64Array(n), new Float64Array(n));
}

const adjoint =
  (where: string, direction: Direction, scale: number): Backward =>
  (g) => [transformed(where, g, direction === "forward" ? "inverse" : "forward", scale)];
