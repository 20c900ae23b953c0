import type { TypedArray } from "@opt/core/backend";
import "@opt/testkit";
import { describe, expect, it } from "vitest";
import { input, output, runKernel, seeded } from "../run-kernel";
import { matmul } from "./matmul";

interface Case {
  batch?: number;
  m: number;
  n: number;
  k: number;
  shareB?: boolean;
}

function multiply({ batch = 1, m, n, k, shareB = false }: Case, flags: string, dtype: "f32" | "f64", parts = 1) {
  const transposeA = flags[0] === "t";
  const transposeB = flags[1] === "t";
  const a = seeded(batch * m * k, 1, dtype);
  const b = seeded((shareB ? 1 : batch) * k * n, 2, dtype);
  const launch = { a: input(dtype, a), b: input(dtype, b), output: output(dtype, batch * m * n), batch, m, n, k };
  const strides = { strideA: m * k, strideB: shareB ? 0 : k * n };
  const spec = { kind: "matmul", transposeA, transposeB, dtype } as const;
  const c = runKernel(matmul, spec, { ...launch, ...strides }, { parts }).output!;
  return { a, b, c, ...strides, transposeA, transposeB };
}

/** Largest error over the sum of |a b|, in units of the rounding error. */
function worstError({ batch = 1, m, n, k }: Case, dtype: "f32" | "f64", result: ReturnType<typeof multiply>): number {
  const { a, b, c, strideA, strideB, transposeA, transposeB } = result;
  const at = (x: TypedArray, origin: number, row: number, column: number, rows: number, columns: number, t: boolean) =>
    x[origin + (t ? column * rows + row : row * columns + column)]!;
  let worst = 0;
  for (let s = 0; s < batch; s++) {
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let sum = 0;
        let size = 0;
        for (let p = 0; p < k; p++) {
          const product = at(a, s * strideA, i, p, m, k, transposeA) * at(b, s * strideB, p, j, k, n, transposeB);
          sum += product;
          size += Math.abs(product);
        }
        const error = Math.abs(c[(s * m + i) * n + j]! - sum);
        worst = Math.max(worst, Number.isNaN(error) ? Infinity : error / Math.max(size, 1e-30));
      }
    }
  }
  return worst / 2 ** (dtype === "f32" ? -24 : -53);
}

const CASES: Case[] = [
  { m: 1, n: 1, k: 1 },
  { m: 3, n: 5, k: 0 },
  { m: 1, n: 17, k: 33 },
  { m: 64, n: 10, k: 32 },
  { m: 17, n: 33, k: 5 },
  { m: 7, n: 300, k: 3 },
  { m: 300, n: 7, k: 17 },
  { m: 13, n: 8, k: 600 },
  { m: 101, n: 266, k: 259 },
  { batch: 3, m: 5, n: 9, k: 4 },
  { batch: 33, m: 6, n: 16, k: 8, shareB: true },
];

describe.each(["nn", "nt", "tn", "tt"])("matmul %s", (flags) => {
  it.each(CASES)("multiplies $batch x $m x $n x $k", (sizes) => {
    for (const dtype of ["f32", "f64"] as const) {
      const result = multiply(sizes, flags, dtype);
      expect(worstError(sizes, dtype, result)).toBeLessThan(2 + Math.sqrt(sizes.k));
    }
  });

  it.each(CASES)("gives the same bits on any number of threads: $batch x $m x $n x $k", (sizes) => {
    const { c } = multiply(sizes, flags, "f32");
    for (const parts of [2, 3, 16]) expect(multiply(sizes, flags, "f32", parts).c).toAgreeWith(c);
  });

  it("does nothing without elements", () => {
    for (const sizes of [
      { batch: 0, m: 2, n: 2, k: 2 },
      { m: 0, n: 2, k: 2 },
      { m: 2, n: 0, k: 2 },
    ]) {
      expect(multiply(sizes, flags, "f32").c).toHaveLength(0);
    }
  });

  it("keeps NaN and infinity to their rows and columns", () => {
    const a = [1, Number.NaN, 2, 3];
    const b = [1, 2, Number.POSITIVE_INFINITY, 4];
    const spec = { kind: "matmul", transposeA: flags[0] === "t", transposeB: flags[1] === "t", dtype: "f32" } as const;
    const launch = { a: input("f32", a), b: input("f32", b), output: output("f32", 4), batch: 1, m: 2, n: 2, k: 2 };
    const c = [...runKernel(matmul, spec, { ...launch, strideA: 4, strideB: 4 }).output!];
    const expected = {
      nn: ["NaN", "NaN", "inf", "16"],
      nt: ["NaN", "NaN", "8", "inf"],
      tn: ["inf", "10", "NaN", "NaN"],
    };
    const name = (x: number) => (Number.isNaN(x) ? "NaN" : x === Infinity ? "inf" : String(x));
    expect(c.map(name)).toEqual(expected[flags as keyof typeof expected] ?? ["5", "inf", "NaN", "NaN"]);
  });
});
