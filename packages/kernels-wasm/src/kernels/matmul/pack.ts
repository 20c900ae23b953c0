/** Copies of blocks of A and B in the order in which tiles of C read them. */
import { LONGEST_CHAIN } from "@opt/core/backend";
import { type FunctionBuilder, i32, type Local, type ModuleBuilder, memory, type Operand, v128 } from "../../assembler";
import { type Float, transpose } from "../float";
import { TILE_VECTORS } from "./tile";

type I32 = Operand<"i32">;

/** The longest piece of k: a panel of B (16 KiB, 8 of float64) stays in the first-level cache. Core's js/matmul.ts says how k is cut. */
export const depthOf = ({ type }: Float) => LONGEST_CHAIN[type];

/** Columns of a panel of B, and bytes between two panels. */
export const panelColumns = (float: Float) => TILE_VECTORS * float.lanes;
export const panelBytes = (float: Float) => depthOf(float) * TILE_VECTORS * 16;

/** Bytes between rows of a packed block of A: an odd number of cache lines, so that rows do not contend for the same ones. */
export const rowBytesOfA = (float: Float) => depthOf(float) * float.bytes + 64;

/** (b, stride, p, j, k, columns, target): a panel of rows `p` to `p + k` of B from column `j` on; columns that it lacks are 0. */
export function emitPackB(module: ModuleBuilder, float: Float, transposed: boolean) {
  const rowBytes = TILE_VECTORS * 16;
  return module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32"] },
    (f, source, stride, p, j, k, columns, target) => {
      const [row, column] = transposed ? [j, p] : [p, j];
      f.increase(source, i32.add(i32.mul(row, stride), i32.mul(column, float.bytes)));
      const end = f.local("i32", i32.add(target, i32.mul(k, rowBytes)));
      f.if(i32.ltU(columns, panelColumns(float)), () => {
        f.do(memory.fill(target, 0, i32.mul(k, rowBytes)));
        const [stepK, stepColumn] = transposed ? [float.bytes, stride] : [stride, float.bytes];
        copyElements(f, float, { source, rows: k, columns, target }, [stepK, stepColumn, rowBytes, float.bytes]);
        f.return();
      });
      if (transposed) packColumns(f, float, source, stride, target, end);
      else {
        f.while(i32.ltU(target, end), () => {
          for (let v = 0; v < TILE_VECTORS; v++) f.do(v128.store(target, v128.load(source, 16 * v), 16 * v));
          f.increase(source, stride);
          f.increase(target, rowBytes);
        });
      }
    },
  );
}

/** Whole panels of a transposed B: its rows become columns, a square of vectors at a time. */
function packColumns(
  f: FunctionBuilder,
  float: Float,
  source: Local<"i32">,
  stride: Local<"i32">,
  target: Local<"i32">,
  end: Local<"i32">,
): void {
  const { bytes, lanes, scalar } = float;
  const rowBytes = TILE_VECTORS * 16;
  const rows = [source];
  while (rows.length < panelColumns(float)) rows.push(f.local("i32", i32.add(rows.at(-1)!, stride)));
  const advance = (count: number) => {
    for (const row of rows) f.increase(row, count * bytes);
    f.increase(target, count * rowBytes);
  };
  f.while(i32.geU(i32.sub(end, target), lanes * rowBytes), () => {
    for (let v = 0; v < TILE_VECTORS; v++) {
      const block = rows.slice(v * lanes, (v + 1) * lanes).map((row) => f.local("v128", v128.load(row)));
      transpose(f, float, block).forEach((vector, step) => {
        f.do(v128.store(target, vector, step * rowBytes + 16 * v));
      });
    }
    advance(lanes);
  });
  f.while(i32.ltU(target, end), () => {
    rows.forEach((row, r) => {
      f.do(scalar.store(target, scalar.load(row), r * bytes));
    });
    advance(1);
  });
}

/** (source, stride, k, rows, target): `rows` rows of A out of a transposed A, which has them as columns. */
export function emitPackA(module: ModuleBuilder, float: Float) {
  const { bytes, lanes } = float;
  const rowBytes = rowBytesOfA(float);
  return module.function({ parameters: ["i32", "i32", "i32", "i32", "i32"] }, (f, source, stride, k, rows, target) => {
    const wholeRows = f.local("i32", i32.and(rows, -lanes));
    const steps = [
      [source, i32.mul(stride, lanes)],
      [target, 16],
    ] as const;
    f.walk(k, lanes, steps, () => {
      const lines = [f.local("i32", source)];
      while (lines.length < lanes) lines.push(f.local("i32", i32.add(lines.at(-1)!, stride)));
      const put = f.local("i32", target);
      const alongRows = [...lines.map((line) => [line, 16] as const), [put, lanes * rowBytes] as const];
      f.walk(f.local("i32", wholeRows), lanes, alongRows, () => {
        const block = lines.map((line) => f.local("v128", v128.load(line)));
        transpose(f, float, block).forEach((vector, row) => {
          f.do(v128.store(put, vector, row * rowBytes));
        });
      });
      const rest = { source: lines[0]!, rows: lanes, columns: i32.sub(rows, wholeRows), target: put };
      copyElements(f, float, rest, [stride, bytes, bytes, rowBytes]);
    });
    copyElements(f, float, { source, rows: k, columns: rows, target }, [stride, bytes, bytes, rowBytes]);
  });
}

interface Elements {
  readonly source: Local<"i32">;
  readonly rows: I32;
  readonly columns: I32;
  readonly target: Local<"i32">;
}

/** Element by element; steps in bytes: of the source by row and by column, of the target by row and by column. */
function copyElements(
  f: FunctionBuilder,
  { scalar }: Float,
  { source, rows, columns, target }: Elements,
  [sourceRow, sourceColumn, targetRow, targetColumn]: readonly [I32, I32, I32, I32],
): void {
  const [from, to] = [f.local("i32", source), f.local("i32", target)];
  const steps = [
    [from, sourceRow],
    [to, targetRow],
  ] as const;
  f.walk(f.local("i32", rows), 1, steps, () => {
    const [at, put] = [f.local("i32", from), f.local("i32", to)];
    const steps = [
      [at, sourceColumn],
      [put, targetColumn],
    ] as const;
    f.walk(f.local("i32", columns), 1, steps, () => f.do(scalar.store(put, scalar.load(at))));
  });
}
