/** What TF.js hands over as gradients, checked before anything changes. */
import { check, show } from "@opt/core";
import { engine, type NamedTensorMap, type Tensor, type Variable } from "@tensorflow/tfjs-core";
import type { NamedTensor } from "./named-weights";
import { valuesOf } from "./read";

/**
 * The variables that have a gradient, with its values. Those whose gradient is null are left out, as TF.js does.
 *
 * @throws OptError BAD_ARGUMENT, DISPOSED, DUPLICATE, BAD_DTYPE, BAD_SHAPE, NOT_SYNC
 */
export function gradientsOf(where: string, given: NamedTensorMap | NamedTensor[]): Map<Variable, Float32Array> {
  const isGiven = typeof given === "object" && given !== null;
  check(
    isGiven,
    "BAD_ARGUMENT",
    where,
    () => `gradients must be { name: tensor } or [{ name, tensor }], got ${show(given)}.`,
    "Pass what computeGradients returned as grads.",
  );
  const entries: [string, Tensor][] = Array.isArray(given)
    ? given.map((each) => {
        const { name, tensor } = Object(each) as NamedTensor;
        check(
          typeof name === "string",
          "BAD_ARGUMENT",
          where,
          () => `each gradient must be { name, tensor }, got ${show(each)}.`,
          "Pass what computeGradients returned as grads.",
        );
        return [name, tensor];
      })
    : Object.entries(given);
  const { registeredVariables } = engine();
  const found = new Map<Variable, Tensor>();
  for (const [name, gradient] of entries) {
    if (gradient === null || gradient === undefined) continue;
    const variable = registeredVariables[name];
    check(
      variable !== undefined,
      "DISPOSED",
      where,
      () => `there is no variable ${show(name)}: it was disposed, or never was one.`,
      "Gradients are given by the names of variables.",
    );
    check(
      !found.has(variable),
      "DUPLICATE",
      where,
      () => `each variable must have one gradient, got two for ${name}.`,
      "List it once in varList.",
    );
    checkGradient(where, variable, gradient);
    found.set(variable, gradient);
  }
  return new Map([...found].map(([variable, gradient]) => [variable, valuesOf(where, variable.name, gradient)]));
}

/** @throws OptError BAD_ARGUMENT, DISPOSED, BAD_DTYPE, BAD_SHAPE */
function checkGradient(where: string, { name, dtype, shape }: Variable, gradient: Tensor): void {
  const isTensor = typeof gradient?.dataSync === "function" && Array.isArray(gradient.shape);
  check(
    isTensor,
    "BAD_ARGUMENT",
    where,
    () => `the gradient of ${name} must be a tf.Tensor, got ${show(gradient)}.`,
    "Make one with tf.tensor(values, shape).",
  );
  check(
    !gradient.isDisposed,
    "DISPOSED",
    where,
    () => `the gradient of ${name} must be alive, got one that was disposed.`,
    "Dispose it after the step.",
  );
  check(
    dtype === "float32",
    "BAD_DTYPE",
    where,
    () => `variables must be float32, got ${dtype} (${name}).`,
    `Make it with tf.variable(x, true, name, "float32").`,
  );
  check(
    gradient.dtype === "float32",
    "BAD_DTYPE",
    where,
    () => `the gradient of ${name} must be float32, got ${gradient.dtype}.`,
    `Cast it: gradient.cast("float32").`,
  );
  const fits = gradient.shape.length === shape.length && gradient.shape.every((extent, i) => extent === shape[i]);
  check(
    fits,
    "BAD_SHAPE",
    where,
    () => `the gradient of ${name} must have its shape [${shape}], got [${gradient.shape}].`,
    "Reshape it.",
  );
}
