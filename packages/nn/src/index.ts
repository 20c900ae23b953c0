/** `@opt/nn`: modules, layers, losses and initialisers over the ops of `@opt/core`. */
export { GELU, ReLU, Sigmoid, Tanh } from "./activations";
export { Conv2d, type Conv2dOptions } from "./conv2d";
export { type CrossEntropyOptions, crossEntropy } from "./cross-entropy";
export { Dropout, type DropoutOptions } from "./dropout";
export { Embedding } from "./embedding";
export type { Fan } from "./fan";
export { Flatten } from "./flatten";
export { gainOf, type Nonlinearity } from "./gain";
export * from "./initializers";
export type { Labels } from "./labels";
export { LayerNorm, type LayerNormOptions } from "./layer-norm";
export type { LayerOptions } from "./layer-options";
export { Linear, type LinearOptions } from "./linear";
export { MaxPool2d } from "./max-pool2d";
export { Module, type StateDict } from "./module";
export { type MseLossOptions, mseLoss } from "./mse-loss";
export type { Reduction } from "./reduction";
export { type Layer, Sequential } from "./sequential";
