/** `@opt/jax-js`: Opt's optimizers as gradient transformations over trees of jax-js arrays. */

export { fromTensors, toTensors } from "./tensors";
export { applyUpdates, type GradientTransformation, gradientTransformation, type State } from "./transformation";
