/** Class indices as rows of zeros and a one. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { cast } from "../cast";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import { unsqueeze } from "../shape/extents";
import { checkIndices } from "./check-indices";
import { positions } from "./positions";

/**
 * i32 [..., classes] with 1 at each index and 0 elsewhere, from integers [...]. An index out of range is refused where the device shares
 * the host's memory, and gives a row of zeros elsewhere,
 * and in replays of a step that computes it.
 *
 * @throws OptError BAD_DTYPE unless the indices are integers; BAD_ARGUMENT for an index that is no class
 * @example
 * oneHot(tensor([1, 0], { dtype: "i32" }), 3); // [[0, 1, 0], [1, 0, 0]]
 */
export function oneHot(indices: Tensor, classes: number): Tensor {
  checkTensor("oneHot", indices, "indices");
  const { dtype } = indices;
  check(
    !isFloat(dtype),
    "BAD_DTYPE",
    "oneHot",
    () => `indices must be integers, got ${dtype}.`,
    'Cast with to("i32").',
  );
  const isCount = Number.isInteger(classes) && classes >= 0;
  checkValue(isCount, "oneHot", "classes", "an integer >= 0", classes, "For example 10.");
  return tidy(() => {
    const at = cast(indices, "i32");
    checkIndices("oneHot", indices, classes);
    return cast(elementwise("eq", [unsqueeze(at, -1), positions([classes], at.device)]), "i32");
  });
}
