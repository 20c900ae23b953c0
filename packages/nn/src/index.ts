/** `@opt/nn`: modules, layers, losses and initialisers over the ops of `@opt/core`. */

export type { Fan } from "./initializers/fan";
export { gainOf, type Nonlinearity } from "./initializers/gain";
export * from "./initializers/initializers";
export {
  GELU,
  LeakyReLU,
  ReLU,
  Sigmoid,
  SiLU,
  Softplus,
  type SoftplusOptions,
  Tanh,
} from "./layers/activations";
export { BatchNorm1d, BatchNorm2d, type BatchNormOptions } from "./layers/batch-norm";
export { Conv2d, type Conv2dOptions } from "./layers/conv2d";
export { Dropout, type DropoutOptions } from "./layers/dropout";
export { Embedding, type EmbeddingOptions } from "./layers/embedding";
export { Flatten } from "./layers/flatten";
export { LayerNorm, type LayerNormOptions } from "./layers/layer-norm";
export type { LayerOptions } from "./layers/layer-options";
export { Linear, type LinearOptions } from "./layers/linear";
export { MaxPool2d } from "./layers/max-pool2d";
export { ModuleDict, ModuleList } from "./layers/module-list";
export { type Layer, Sequential } from "./layers/sequential";
export { type BceWithLogitsOptions, bceWithLogits } from "./losses/bce-with-logits";
export { type CrossEntropyOptions, crossEntropy } from "./losses/cross-entropy";
export { type HuberLossOptions, huberLoss, type L1LossOptions, l1Loss } from "./losses/distance";
export { type KlDivOptions, klDiv } from "./losses/kl-div";
export type { Labels } from "./losses/labels";
export { type MseLossOptions, mseLoss } from "./losses/mse-loss";
export { type NllLossOptions, nllLoss } from "./losses/nll-loss";
export type { Reduction } from "./losses/reduction";
export { type Misfit, Module, type StateDict } from "./module/module";
