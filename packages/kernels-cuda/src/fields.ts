/** The launches whose arguments begin with a struct of core's fields: the build writes it for native/cuda/kernels. */
import { fieldsOf } from "@opt/core/backend";

export const FIELDS = {
  reduce: fieldsOf("reduce"),
  matmul: fieldsOf("matmul"),
  gather: fieldsOf("gather"),
  scatterAdd: fieldsOf("scatterAdd"),
  unfold: fieldsOf("unfold"),
  fold: fieldsOf("fold"),
  maxPool2d: fieldsOf("maxPool2d"),
  maxPool2dGrad: fieldsOf("maxPool2dGrad"),
  batchNorm: fieldsOf("batchNorm"),
  batchNormGrad: fieldsOf("batchNormGrad"),
};
