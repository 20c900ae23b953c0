/** A launch over some rows of a tensor as the launch over a list of tensors that it is: each row is one. */
import type { Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import { byteSize } from "../values/dtype";

/** The slices of the rows that there are. `tensors` have the whole of each buffer, but of the gradient as many rows as `rows` are long. */
export function rowSlices({ kernel, tensors }: Launch<"rule">, rows: Int32Array): (readonly Slice[])[] {
  const { dtype, stored } = kernel.spec;
  const lists: (readonly Slice[])[] = [];
  for (const slices of tensors) {
    const sizes = slices.map((_, slot) => byteSize(stored?.[slot] ?? dtype));
    const length = slices[1]!.length / rows.length;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (row < 0 || (row + 1) * length > slices[0]!.length) continue;
      const list: Slice[] = new Array(slices.length);
      for (let slot = 0; slot < slices.length; slot++) {
        const { memory, byteOffset } = slices[slot]!;
        list[slot] = { memory, byteOffset: byteOffset + (slot === 1 ? i : row) * length * sizes[slot]!, length };
      }
      lists.push(list);
    }
  }
  return lists;
}
