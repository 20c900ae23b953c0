/** `@opt/tfjs`: Opt's optimizers as optimizers of TensorFlow.js. */
export type { NamedTensor } from "./named-weights";
export { registerOptimizers } from "./registered";
export { TfOptimizer, type TfOptimizerSettings } from "./tf-optimizer";
