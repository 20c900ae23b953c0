/** `@opt/jax-js`: Opt's optimizers as gradient transformations over trees of jax-js arrays. */

export type { Tree } from "./leaves";
export { fromTensors, toTensors } from "./tensors";
export { applyUpdates, type GradientTransformation, gradientTransformation, type State } from "./transformation";
