/** Kernels that single ops launch, most of them of layers. */
export { gather, scatterAdd } from "./rows-by-index";
export { fold, maxPool2d, maxPool2dGrad, unfold } from "./windows";
