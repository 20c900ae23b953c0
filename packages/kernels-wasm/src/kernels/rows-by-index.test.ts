import "@opt/testkit";
import { describe, expect, it } from "vitest";
import { gather } from "./gather";
import { input, output, runKernel, seeded } from "./run-kernel";
import { scatterAdd } from "./scatter-add";

const SHAPES = [
  { rows: 1, width: 1, count: 1 },
  { rows: 4, width: 3, count: 9 },
  { rows: 7, width: 17, count: 33 },
  { rows: 5, width: 1027, count: 6 },
  { rows: 100, width: 2, count: 70_001 },
  { rows: 3, width: 4, count: 0 },
];
const indicesOf = (count: number, rows: number) =>
  Array.from({ length: count }, (_, i) => ((i * 7919) % (rows + 2)) - 1);

describe.each(["f32", "f64"] as const)("%s rows by index", (dtype) => {
  it.each(SHAPES)("gathers $count of $rows x $width, NaN for rows out of range", ({ rows, width, count }) => {
    const table = seeded(rows * width, 1, dtype);
    const indices = indicesOf(count, rows);
    const inputs = { table: input(dtype, table), indices: input("i32", indices) };
    const launch = { ...inputs, output: output(dtype, count * width), rows, width, count };
    const expected = indices.flatMap((row) =>
      row < 0 || row >= rows
        ? new Array<number>(width).fill(Number.NaN)
        : [...table.slice(row * width, (row + 1) * width)],
    );
    for (const parts of [1, 3]) {
      expect([...runKernel(gather, { kind: "gather", dtype }, launch, { parts }).output!]).toEqual(expected);
    }
  });

  it.each(SHAPES)("scatters $count rows into $rows x $width in order", ({ rows, width, count }) => {
    const source = seeded(count * width, 2, dtype);
    const indices = indicesOf(count, rows);
    const expected = seeded(rows * width, 3, dtype).fill(0);
    indices.forEach((row, i) => {
      if (row < 0 || row >= rows) return;
      for (let j = 0; j < width; j++) expected[row * width + j]! += source[i * width + j]!;
    });
    const inputs = { source: input(dtype, source), indices: input("i32", indices) };
    for (const parts of [1, 3]) {
      const launch = { ...inputs, output: output(dtype, rows * width), rows, width, count };
      expect(runKernel(scatterAdd, { kind: "scatterAdd", dtype }, launch, { parts }).output).toAgreeWith(expected);
    }
  });
});
