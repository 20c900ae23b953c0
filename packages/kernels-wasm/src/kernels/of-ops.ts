/** Kernels that single ops launch, most of them of layers. */
export { attention, attentionGrad } from "./attention";
export { batchNorm, batchNormGrad } from "./batch-norm";
export { fold, unfold } from "./fold";
export { gather } from "./gather";
export { lstm, lstmGrad } from "./lstm";
export { maxPool2d, maxPool2dGrad } from "./max-pool";
export { scatterAdd } from "./scatter-add";
