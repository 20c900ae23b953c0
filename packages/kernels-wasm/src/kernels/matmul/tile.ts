/** The innermost part of a matrix product: a tile of C that stays in registers while k goes by. */
import { i32, type ModuleBuilder, v128 } from "../../assembler";
import type { Target } from "../../kernel";
import { type Float, multiplyAdd } from "../float";

/** Vectors of a row of the tile, as many as a panel of B is wide. */
export const TILE_VECTORS = 2;

export interface TileShape {
  /** At most. With 2 vectors a row, 6 rows fill the 16 registers of x86-64: 12 sums, 2 vectors of B and one of A. */
  readonly rows: number;
  /** Steps of k written out. */
  readonly unroll: number;
}

/** An addition apart from its product takes one register more; with it, short loops were measured to be the fastest in Node 20. */
export function tileShape({ relaxedSimd }: Target): TileShape {
  return relaxedSimd ? { rows: 6, unroll: 4 } : { rows: 5, unroll: 1 };
}

/**
 * (a, strideA, b, strideB, k, c, strideC, first): C = (C unless first) + A B for `rows` rows of A and C and a panel of B,
 * their rows `stride` bytes apart. Each element is summed in the order of k.
 */
export function emitTile(module: ModuleBuilder, float: Float, target: Target, rows: number) {
  const { unroll } = tileShape(target);
  const { bytes } = float;
  const { add, loadSplat } = float.vector;
  const madd = multiplyAdd(float, target);
  return module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"] },
    (f, a, strideA, b, strideB, k, c, strideC, first) => {
      const sums = Array.from({ length: rows }, () => Array.from({ length: TILE_VECTORS }, () => f.local("v128")));
      const ofB = Array.from({ length: TILE_VECTORS }, () => f.local("v128"));
      const ofA = f.local("v128");
      const rowsOfA = [a];
      while (rowsOfA.length < rows) rowsOfA.push(f.local("i32", i32.add(rowsOfA.at(-1)!, strideA)));

      const steps = (count: number) => {
        for (let u = 0; u < count; u++) {
          ofB.forEach((vector, v) => {
            f.set(vector, v128.load(b, 16 * v));
          });
          f.increase(b, strideB);
          sums.forEach((row, r) => {
            f.set(ofA, loadSplat(rowsOfA[r]!, u * bytes));
            row.forEach((sum, v) => {
              f.set(sum, madd(ofA, ofB[v]!, sum));
            });
          });
        }
        for (const pointer of rowsOfA) f.increase(pointer, count * bytes);
        f.decrease(k, count);
      };
      if (unroll > 1) f.while(i32.geU(k, unroll), () => steps(unroll));
      f.while(k, () => steps(1));

      for (const row of sums) {
        f.if(i32.eqz(first), () => {
          row.forEach((sum, v) => {
            f.set(sum, add(v128.load(c, 16 * v), sum));
          });
        });
        row.forEach((sum, v) => {
          f.do(v128.store(c, sum, 16 * v));
        });
        f.increase(c, strideC);
      }
    },
  );
}
