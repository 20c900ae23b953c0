/** Class indices as rows of zeros and a one. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { overSamples } from "../../tensor/batching";
import type { Tensor } from "../../tensor/tensor";
import { cast } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { eq } from "../elementwise/logic";
import { unsqueeze } from "../shape/extents";
import { checkIndexDType, checkIndices } from "./check-indices";
import { positions } from "./positions";

/**
 * i32 [..., classes] with 1 at each index and 0 elsewhere, from i32 [...]. An index out of range throws where the device shares
 * the host's memory, and gives a row of zeros elsewhere,
 * and in replays of a step that computes it.
 *
 * @throws OptError BAD_DTYPE unless the indices are i32; BAD_ARGUMENT for an index that is no class
 * @example
 * oneHot(tensor([1, 0], { dtype: "i32" }), 3); // [[0, 1, 0], [1, 0, 0]]
 */
export const oneHot = /* @__PURE__ */ definePrimitive(
  { torch: "F.one_hot(a.long(), $0)", tensors: ["i32 n"], arguments: [3] },
  (indices: Tensor, classes: number): Tensor => {
    const samples = overSamples(oneHot, indices, classes);
    if (samples) return samples;
    checkTensor("oneHot", indices, "indices");
    checkIndexDType("oneHot", indices);
    const isCount = Number.isInteger(classes) && classes >= 0;
    checkValue(isCount, "oneHot", "classes", "an integer >= 0", classes, "For example 10.");
    return tidy(() => {
      checkIndices("oneHot", indices, classes);
      return cast(eq(unsqueeze(indices, -1), positions([classes], indices.device)), "i32");
    });
  },
);
