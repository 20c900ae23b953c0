/** Transforms of complex numbers as pairs of f32: [..., n, 2]. Everything around them is made of ops on real numbers. */
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
    const transform = transformOf(n);
    if (kernels?.fourierTransform && transform.blocks) {
      const options = { ...transform.blocks, inverse: direction === "inverse", scale };
      for (let start = 0; start < given.length; start += 2 * n) {
        const [from, to] = [given, result!].map((all) => (all as Float32Array).subarray(start, start + 2 * n));
        kernels.fourierTransform({ ...options, from: from!, to: to! });
      }
      return;
    }
    const [re, im] = [new Float64Array(n), new Float64Array(n)];
    for (let start = 0; start < given.length; start += 2 * n) {
      for (let k = 0; k < n; k++) {
        re[k] = given[start + 2 * k]!;
        im[k] = given[start + 2 * k + 1]!;
      }
      if (direction === "forward") transform(re, im);
      else transform(im, re);
      for (let k = 0; k < n; k++) {
        result![start + 2 * k] = re[k]! * scale;
        result![start + 2 * k + 1] = im[k]! * scale;
      }
    }
  });
  return record(where, output!, [x], [], adjoint(where, direction, scale));
}

const adjoint =
  (where: string, direction: Direction, scale: number): Backward =>
  (g) => [transformed(where, g, direction === "forward" ? "inverse" : "forward", scale)];
