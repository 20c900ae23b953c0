/** Writing by positions, ranges, index tensors and masks: in place. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { checkWritable } from "../../tensor/copied";
import { isTaping, recordWrite } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import type { TensorData } from "../../values/literal";
import { copyInto } from "../cast";
import { checkTensor } from "../check-tensor";
import { write } from "../shape/region";
import { fitted, gradientsOf, listOf, valueFor, withValue } from "./index-put";
import { type Index, parseIndex } from "./parse-index";

/**
 * Writes a value where the index chooses: `x[index] = value` of PyTorch. The index is a list as `at` takes it, the value broadcasts, and is
 * cast to x's dtype. Of equal positions the last counts. Where x or the value requires a gradient, it is recorded as PyTorch's
 * `index_put_`: x is the result from then on, and gradients go to the value and to what stays of x.
 *
 * @throws OptError BAD_SHAPE unless the value broadcasts; BAD_ARGUMENT, also for a leaf that requires a gradient, outside of noGrad;
 * BAD_STATE for a copy such as the result of slice; BAD_DTYPE, DEVICE_MISMATCH; NOT_SYNC as `indexPut`
 * @example
 * const cache = zeros([4, 2]);
 * cache.assign([[1, 3]], [[1, 2], [3, 4]]); // cache[1:3] = ...
 * cache.assign([null, 0], 7); // cache[:, 0] = 7
 */
export function assign(x: Tensor, index: Index | readonly Index[], value: Tensor | TensorData): void {
  const where = "assign";
  checkTensor(where, x);
  checkWritable(where, x, value);
  checkNotLeaf(where, x);
  tidy(() => {
    const parsed = parseIndex(where, x, listOf(where, index));
    const given = valueFor(where, x, value);
    if (parsed.picks.length > 0) {
      const result = withValue(where, x, parsed, given);
      copyInto(result, x);
      if (result.node !== null) x.rewrite(result.node.retain());
      return;
    }
    const { region } = parsed;
    const fitting = fitted(where, given, region.shape);
    write(fitting, x, region);
    recordWrite("assign", x, [x, fitting], gradientsOf(fitting.shape, region));
  });
}

/** @throws OptError BAD_ARGUMENT, as PyTorch */
function checkNotLeaf(where: string, x: Tensor): void {
  check(
    !isTaping() || x.node !== null || !x.requiresGrad,
    "BAD_ARGUMENT",
    where,
    () => "a leaf that requires a gradient can't be overwritten on the tape.",
    `Use noGrad(() => x.assign(index, value)), or indexPut, which makes a new tensor.`,
  );
}
