/** Steps of TensorFlow.js' variables, whatever its backend. */
import type * as TF from "@tensorflow/tfjs-core";
import { type Session, timed } from "../contender";
import { firstParameters, gradients, type OptimizerWork } from "../optimizer-work";

/** Adam without weight decay and with another epsilon, the nearest to AdamW that TensorFlow.js has. */
export const ADAM_TOLERANCE = 1e-3;
export const adamOf = (tf: typeof TF) => tf.train.adam(1e-3, 0.9, 0.999, 1e-8);

/** @param waits for the last step, where the backend computes beside the program */
export function tfSteps(
  tf: typeof TF,
  optimizer: TF.Optimizer,
  { tensors, size }: OptimizerWork,
  waits: boolean,
): Session {
  const first = firstParameters(size);
  const variables = Array.from({ length: tensors }, () => tf.tidy(() => tf.variable(tf.tensor1d(first.slice()))));
  const gradient = tf.tensor1d(gradients(size));
  const named = Object.fromEntries(variables.map((variable) => [variable.name, gradient]));
  const read = async (count: number) => {
    const part = tf.slice(variables[0]!, [0], [Math.min(count, size)]);
    const values = await part.data<"float32">();
    part.dispose();
    return [...values];
  };
  return {
    run: (steps) =>
      timed(
        steps,
        () => optimizer.applyGradients(named),
        () => (waits ? read(1) : undefined),
      ),
    result: read,
    async close() {
      tf.dispose([...variables, gradient]);
      optimizer.dispose();
    },
  };
}
