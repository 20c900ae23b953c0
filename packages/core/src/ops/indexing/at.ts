/** Reading by positions, ranges, index tensors and masks. */

import { tidy } from "../../device/scope";
import type { Tensor } from "../../tensor/tensor";
import { gather } from "../indices/gather";
import { taken } from "../shape/region";
import { reshape } from "../shape/shape";
import type { ParsedIndex } from "./parse-index";
import { layoutOf, placedBatch, rowsOf, tableOf, withoutMasks } from "./picks";

/** What an index chooses, as a copy. @throws OptError BAD_ARGUMENT, BAD_SHAPE, NOT_SYNC, UNSUPPORTED */
export function chosenBy(x: Tensor, { region, picks }: ParsedIndex): Tensor {
  if (picks.length === 0) return taken("at", x, region);
  return tidy(() => {
    const part = isWhole({ region, picks }) ? reshape(x, x.shape) : taken("at", x, region);
    const positions = withoutMasks("at", picks);
    const layout = layoutOf(region.shape, picks);
    const rows = rowsOf("at", positions, layout);
    return placedBatch(gather(tableOf(part, layout), rows), rows.shape.length, layout);
  });
}

/** True where the region is the tensor itself. */
export function isWhole({ region }: ParsedIndex): boolean {
  return region.chosen.every((choice) => choice === null);
}
