/** One variable under a loss whose gradient is known: 2 c w of c |w|^2. */
import * as tf from "@tensorflow/tfjs-core";

export const squares = (w: tf.Tensor, coefficient = 1): tf.Scalar =>
  tf.mul(tf.sum(tf.square(w)), coefficient) as tf.Scalar;

/** The gradient of `squares`, as TF.js' kernels round it. */
export const gradientOfSquares = (w: ArrayLike<number>, coefficient = 1): Float32Array =>
  Float32Array.from(w, (value) => Math.fround(Math.fround(coefficient) * Math.fround(2 * value)));
