/** The order in which elements are added up, on every exact device. */

const LANES = 16;
const CHUNK = 32_768;
const lanes = /* @__PURE__ */ new Float64Array(LANES);

/** The sum of `term(i)` for i below `length`: element i of a chunk goes to lane i mod 16, lanes are added as a tree, chunks in order. */
export function sumOf(length: number, term: (i: number) => number): number {
  let total = 0;
  for (let start = 0; start < length; start += CHUNK) {
    const end = Math.min(length, start + CHUNK);
    lanes.fill(0);
    for (let i = start; i < end; i++) lanes[i % LANES]! += term(i);
    for (let half = LANES / 2; half >= 1; half /= 2) {
      for (let j = 0; j < half; j++) lanes[j]! += lanes[j + half]!;
    }
    total += lanes[0]!;
  }
  return total;
}

/** The sum over `rows` of `term(row, column)` for each of the columns: rows of a chunk in order, then chunks in order. */
export function sumColumns(
  rows: number,
  columns: number,
  term: (row: number, column: number) => number,
): Float64Array<ArrayBuffer> {
  const rowsOfChunk = Math.max(1, Math.floor(CHUNK / Math.min(columns, 64)));
  const totals = new Float64Array(columns);
  const sums = new Float64Array(columns);
  for (let start = 0; start < rows; start += rowsOfChunk) {
    sums.fill(0);
    for (let row = start; row < Math.min(rows, start + rowsOfChunk); row++) {
      for (let column = 0; column < columns; column++) sums[column]! += term(row, column);
    }
    for (let column = 0; column < columns; column++) totals[column]! += sums[column]!;
  }
  return totals;
}
