/** Walks a strided shape row by row. */

/** Calls `visit` for every row along the last dimension with the offset of its first element for each list of strides. */
export function forEachRow(
  shape: readonly number[],
  strides: readonly (readonly number[])[],
  visit: (offsets: number[], row: number) => void,
): void {
  if (shape.includes(0)) return;
  const outer = shape.slice(0, -1);
  const position = outer.map(() => 0);
  const offsets = strides.map(() => 0);
  for (let row = 0; ; row++) {
    visit(offsets, row);
    let axis = outer.length - 1;
    for (; axis >= 0; axis--) {
      position[axis]!++;
      for (let k = 0; k < strides.length; k++) offsets[k]! += strides[k]![axis]!;
      if (position[axis]! < outer[axis]!) break;
      for (let k = 0; k < strides.length; k++) offsets[k]! -= strides[k]![axis]! * outer[axis]!;
      position[axis] = 0;
    }
    if (axis < 0) return;
  }
}
