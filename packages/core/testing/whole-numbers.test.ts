// Ops of integers give what they give of the same numbers in float64, modulo 2^32 and 2^8.
import { leavesOf, Random } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { OptError } from "../src/errors/errors";
import { type DType, type Tensor, tidy } from "../src/index";
import { isFloat } from "../src/values/dtype";
import { Draw, type Row, type Shape } from "./draw";
import { OP_ROWS } from "./op-calls";
import { RARE } from "./sweep";

/** Draws 1 and 2 alone, of which products are exact; where `isLarge` 1 and 128, whose sums leave the range of u8. */
class WholeDraw extends Draw {
  isLarge = false;

  override numbers(shape: Shape) {
    const values = Array.from(this.whole(shape, 2).values, (value) => (value === 0 ? 1 : this.isLarge ? 128 : 2));
    return { values, shape, dtype: "f64" as const };
  }
}

/** Ops that stay in the dtype, modulo its range. */
const SUMS = /^(indexAdd|scatterAdd|sum|matmul|einsum|outer|kron|trace|tensordot|cumsum)\b/;

const CUT: Readonly<Record<string, (value: number) => number>> = {
  i32: (value) => Number(BigInt.asIntN(32, BigInt(Math.trunc(value)))),
  u8: (value) => Number(BigInt.asUintN(8, BigInt(Math.trunc(value)))),
};

function outputs(row: Row, seed: number, dtype: DType): Tensor[] | null {
  const draw = new WholeDraw(new Random(seed), ["f64"]);
  draw.isLarge = seed > 2;
  const { inputs, run } = row(draw);
  const isWhole = (value: number) => Number.isInteger(value) && value >= 0 && value < 256 && !Object.is(value, -0);
  if (!inputs.every(({ values }) => Array.from(values).every(isWhole))) return null; // rows of infinities, for example
  const given = inputs.map((input) => (input.dtype === "f64" ? { ...input, dtype, requiresGrad: false } : input));
  try {
    return [run(...leavesOf({ inputs: given, name: "", code: "", run }))].flat() as Tensor[];
  } catch (error) {
    if (error instanceof OptError) return null;
    throw error;
  }
}

describe.each(["i32", "u8"] as const)("of %s", (dtype) => {
  it.each(Object.entries({ ...OP_ROWS, ...RARE }))("%s", (name, row) => {
    for (let seed = 0; seed < (SUMS.test(name) ? 8 : 3); seed++)
      tidy(() => {
        const [exact, found] = [outputs(row, seed, "f64"), outputs(row, seed, dtype)];
        if (exact === null || found === null) return;
        for (const [i, x] of found.entries()) {
          const values = Array.from(exact[i]!.dataSync() as Float64Array, CUT[x.dtype] ?? Number);
          const close = isFloat(x.dtype) ? 1e-4 : 0;
          expect(x.shape).toEqual(exact[i]!.shape);
          expect(Float64Array.from(x.dataSync() as Int32Array)).toAgreeWith(Float64Array.from(values), {
            absolute: close,
            relative: close,
          });
        }
      });
  });
});
