/** The js device with every kernel, for device packages and tests, which launch without ops. */
import type { Backend } from "../backend/backend";
import { attention, attentionGrad } from "./attention";
import { openJsBackend } from "./backend";
import { batchNorm, batchNormGrad } from "./batch-norm";
import { type CarriedKind, type CarriedRun, carried } from "./carried";
import { groupNorm, groupNormGrad } from "./group-norm";
import { lstm, lstmGrad } from "./lstm";
import { gather, scatterAdd } from "./rows-by-index";
import { fold, maxPool2d, maxPool2dGrad, unfold } from "./windows";

/** The backend of the device `js`: plain loops over typed arrays, the reference for all others. */
export function openCompleteJsBackend(): Backend {
  const kernels: { readonly [K in CarriedKind]: CarriedRun<K> } = {
    ...{ fold, gather, maxPool2d, maxPool2dGrad },
    ...{ attention, attentionGrad, batchNorm, batchNormGrad, groupNorm, groupNormGrad },
    ...{ lstm, lstmGrad, scatterAdd, unfold },
  };
  for (const kind of Object.keys(kernels) as CarriedKind[]) {
    carried(kind, kernels[kind] as CarriedRun<CarriedKind>);
  }
  return openJsBackend();
}
