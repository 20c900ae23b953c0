/** Kernels that single ops launch, most of them of layers, and products that read windows, too. */
import { productOf } from "./matmul/matmul";
import { emitPackWindows } from "./windows/pack";
import { windowWords } from "./windows/windows";

export { attention, attentionGrad } from "./attention";
export { batchNorm, batchNormGrad } from "./batch-norm";
export { gather } from "./gather";
export { groupNorm, groupNormGrad } from "./group-norm";
export { lstm, lstmGrad } from "./lstm";
export { scatterAdd } from "./scatter-add";
export { fold, unfold } from "./windows/fold";
export { maxPool2d, maxPool2dGrad } from "./windows/max-pool";
export const matmul = productOf(emitPackWindows, windowWords);
