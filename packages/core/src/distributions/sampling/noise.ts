/** Noise that samples are computed from: drawn in float32 or float64, and cast. */
import { rand } from "../../create";
import type { DrawOptions } from "../../draws";
import { computeIn } from "../../ops/cast";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import type { Shape } from "../../values/shape";

/** f(u) of numbers u in [0, 1), in the dtype and on the device of a parameter. */
export function uniformNoise(shape: Shape, like: Tensor, options: DrawOptions, f: (u: Tensor) => Tensor): Tensor {
  const { dtype, device } = like;
  const compute = dtype === "f64" ? "f64" : "f32";
  return noGrad(() => computeIn(compute, [], dtype, () => f(rand(shape, { dtype: compute, device, ...options }))));
}
