/** A launch over some rows of a tensor as the launch over a list of tensors that it is: each row is one. */
import type { Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import { check } from "../errors/errors";
import { isPacked } from "../rule/codebook";
import { isRandom } from "../rule/rounding";
import type { RandomDType, StoredDType, StoredFormats } from "../rule/stored";
import { byteSize } from "../values/dtype";

/** Blocks of packed state belong to several rows. @throws OptError UNSUPPORTED */
function checkWhole(
  format: StoredFormats[number] | undefined,
): asserts format is StoredDType | RandomDType | undefined {
  check(
    !isPacked(format),
    "UNSUPPORTED",
    "step",
    () => "lazyMode steps some rows, and packed state is kept in blocks of 256 elements that rows share.",
    "Load the state again, with another stateDType.",
  );
}

/** The slices of the rows that there are. `tensors` have the whole of each buffer, but of the gradient as many rows as `rows` are long. */
export function rowSlices({ kernel, tensors }: Launch<"rule">, rows: Int32Array): (readonly Slice[])[] {
  const { dtype, stored } = kernel.spec;
  const lists: (readonly Slice[])[] = [];
  for (const slices of tensors) {
    const sizes = slices.map((_, slot) => {
      const format = stored?.[slot];
      checkWhole(format);
      return isRandom(format) ? 2 : byteSize(format ?? dtype);
    });
    const length = slices[1]!.length / rows.length;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (row < 0 || (row + 1) * length > slices[0]!.length) continue;
      const list: Slice[] = new Array(slices.length);
      const { place } = slices[0]!;
      for (let slot = 0; slot < slices.length; slot++) {
        const { memory, byteOffset } = slices[slot]!;
        list[slot] = { memory, byteOffset: byteOffset + (slot === 1 ? i : row) * length * sizes[slot]!, length };
      }
      if (place !== undefined) list[0] = { ...list[0]!, place: place + row * length };
      lists.push(list);
    }
  }
  return lists;
}
