/** One position of an axis, without the axis. */

import { checkValue } from "../../errors/check-value";
import type { Tensor } from "../../tensor/tensor";
import { normalizeAxis, showShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { type Region, regionOf } from "./region";

/** What `select` takes: one position of an axis, without the axis. @throws OptError BAD_ARGUMENT, BAD_DTYPE, DISPOSED */
export function selectRegion(x: Tensor, axis: number, index: number): Region {
  const where = "select";
  checkTensor(where, x);
  const along = normalizeAxis(where, axis, x.shape.length);
  const extent = x.shape[along]!;
  const isThere = Number.isInteger(index) && index >= -extent && index < extent;
  checkValue(
    isThere,
    where,
    "index",
    `an integer from ${-extent} to ${extent - 1}`,
    index,
    `x is ${showShape(x.shape)}.`,
  );
  const position = index < 0 ? index + extent : index;
  return regionOf(
    x.shape,
    x.shape.map((_, i) => (i === along ? position : null)),
  );
}
