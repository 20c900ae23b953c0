/**
 * Matrix product, after Goto & van de Geijn (2008): blocks of B are packed into panels that a microkernel streams through,
 * holding a small tile of C in registers. Every element of C is summed over k in one order, whatever its tile or thread.
 */
import type { Spec } from "@opt/core/backend";
import { i32, i64, type Local, ModuleBuilder, memory, type Operand, v128 } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { type Float, floatOf, multiplyAdd, transpose } from "./float";

/** Rows and vectors of a tile: 12 accumulators, 2 vectors of B and one of A fill the 16 registers of x86-64. */
const ROWS = 6;
const VECTORS = 2;
/** Steps of k between two visits of C: a panel of B (8 KiB) stays in the first-level cache. */
const DEPTH = 256;
/** Panels of B packed at once (256 KiB), and rows of a transposed A: they share the second-level cache. */
const PANELS = 32;
const BLOCK_ROWS = 16 * ROWS;
const UNROLL = 4;
/** Threads share out at most this many stripes of C, each with its own packing memory. */
const STRIPES = 16;
/** Up to this many rows it does not pay to pack a B that is not transposed. */
const DIRECT_ROWS = 2 * ROWS;

const AXES = ["batch", "rows", "columns"] as const;
/** What a launch passes on, as i32 words in this order. */
const WORDS = [
  ...["a", "b", "c", "m", "n", "k", "batch", "strideA", "strideB"],
  ...["axis", "unit", "scratch", "slotBytes"],
] as const;
type I32 = Operand<"i32">;

const panelColumns = (float: Float) => VECTORS * float.lanes;
const panelBytes = (float: Float) => DEPTH * panelColumns(float) * float.bytes;

/**
 * C tile = (C tile unless first) + A rows * B panel. A not transposed is read in place, its rows `strideA` bytes apart;
 * A transposed is packed, one step of k after the other.
 */
function emitTile(module: ModuleBuilder, float: Float, target: Target, packedA: boolean, rows: number) {
  const madd = multiplyAdd(float, target);
  const { add, loadSplat } = float.vector;
  const stepA = packedA ? ROWS * float.bytes : float.bytes;
  return module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"] },
    (f, a, strideA, b, stepB, k, c, strideC, first) => {
      const sums = Array.from({ length: rows }, () => Array.from({ length: VECTORS }, () => f.local("v128")));
      const ofB = Array.from({ length: VECTORS }, () => f.local("v128"));
      const ofA = f.local("v128");
      const rowA = [a];
      if (!packedA) for (let r = 1; r < rows; r++) rowA.push(f.local("i32", i32.add(rowA[r - 1]!, strideA)));

      const steps = (count: number) => {
        for (let u = 0; u < count; u++) {
          ofB.forEach((vector, v) => {
            f.set(vector, v128.load(b, 16 * v));
          });
          f.set(b, i32.add(b, stepB));
          sums.forEach((row, r) => {
            f.set(ofA, packedA ? loadSplat(a, u * stepA + r * float.bytes) : loadSplat(rowA[r]!, u * stepA));
            row.forEach((sum, v) => {
              f.set(sum, madd(ofA, ofB[v]!, sum));
            });
          });
        }
        for (const pointer of rowA) f.set(pointer, i32.add(pointer, count * stepA));
      };
      const left = f.local("i32", k);
      f.while(i32.geU(left, UNROLL), () => {
        steps(UNROLL);
        f.set(left, i32.sub(left, UNROLL));
      });
      f.while(left, () => {
        steps(1);
        f.set(left, i32.sub(left, 1));
      });

      for (const row of sums) {
        f.if(i32.eqz(first), () => {
          row.forEach((sum, v) => {
            f.set(sum, add(v128.load(c, 16 * v), sum));
          });
        });
        row.forEach((sum, v) => {
          f.do(v128.store(c, sum, 16 * v));
        });
        f.set(c, i32.add(c, strideC));
      }
    },
  );
}

/** Copies `columns` columns and `k` rows of B from `source` to a panel, its missing columns 0. */
function emitPackB(module: ModuleBuilder, float: Float, transposed: boolean) {
  const { bytes, lanes, scalar } = float;
  const rowBytes = VECTORS * 16;
  return module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32"] },
    (f, source, stride, k, columns, target) => {
      const end = f.local("i32", i32.add(target, i32.mul(k, rowBytes)));
      f.if(i32.ltU(columns, panelColumns(float)), () => {
        const column = f.local("i32");
        f.do(memory.fill(target, 0, i32.mul(k, rowBytes)));
        const [stepK, stepColumn] = transposed ? [bytes, stride] : [stride, bytes];
        f.while(i32.ltU(target, end), () => {
          const at = f.local("i32", source);
          f.for(column, 0, columns, 1, () => {
            const to = i32.add(target, i32.mul(column, bytes));
            f.do(scalar.store(to, scalar.load(at)));
            f.set(at, i32.add(at, stepColumn));
          });
          f.set(source, i32.add(source, stepK));
          f.set(target, i32.add(target, rowBytes));
        });
        f.return();
      });
      if (!transposed) {
        f.while(i32.ltU(target, end), () => {
          for (let v = 0; v < VECTORS; v++) f.do(v128.store(target, v128.load(source, 16 * v), 16 * v));
          f.set(source, i32.add(source, stride));
          f.set(target, i32.add(target, rowBytes));
        });
        return;
      }
      const rows = [source];
      for (let r = 1; r < panelColumns(float); r++) rows.push(f.local("i32", i32.add(rows[r - 1]!, stride)));
      const advance = (count: number) => {
        for (const row of rows) f.set(row, i32.add(row, count * bytes));
        f.set(target, i32.add(target, count * rowBytes));
      };
      f.while(i32.geU(i32.sub(end, target), lanes * rowBytes), () => {
        for (let v = 0; v < VECTORS; v++) {
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
    },
  );
}

/** Copies `rows` (at most ROWS) rows and `k` columns of a transposed A, step by step of k. */
function emitPackA(module: ModuleBuilder, float: Float) {
  const { bytes, scalar } = float;
  const stepBytes = ROWS * bytes;
  return module.function({ parameters: ["i32", "i32", "i32", "i32", "i32"] }, (f, source, stride, k, rows, target) => {
    const end = f.local("i32", i32.add(target, i32.mul(k, stepBytes)));
    const row = f.local("i32");
    const full = f.local("i32", i32.eq(rows, ROWS));
    f.while(i32.ltU(target, end), () => {
      f.if(
        full,
        () => {
          let at = 0;
          for (; at + 16 <= stepBytes; at += 16) f.do(v128.store(target, v128.load(source, at), at));
          if (at < stepBytes) f.do(i64.store(target, i64.load(source, at), at));
        },
        () =>
          f.for(row, 0, i32.mul(rows, bytes), bytes, () => {
            f.do(scalar.store(i32.add(target, row), scalar.load(i32.add(source, row))));
          }),
      );
      f.set(source, i32.add(source, stride));
      f.set(target, i32.add(target, stepBytes));
    });
  });
}

function emit({ transposeA, transposeB, dtype }: Spec<"matmul">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { bytes } = float;
  const width = panelColumns(float);
  const module = new ModuleBuilder({ shared: target.shared });
  const tiles = Array.from({ length: ROWS }, (_, r) => emitTile(module, float, target, transposeA, r + 1));
  const packB = emitPackB(module, float, transposeB);
  const packA = transposeA ? emitPackA(module, float) : undefined;

  /** One row panel against one panel of B, into C or, where C has no room for whole vectors, by way of `edge`. */
  const multiply = module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"] },
    (f, rows, a, strideA, b, stepB, k, c, strideC, first, columns, edge) => {
      const tile = (c: I32, strideC: I32, first: I32) =>
        tiles.forEach((call, r) => {
          f.if(i32.eq(rows, r + 1), () => f.do(call(a, strideA, b, stepB, k, c, strideC, first)));
        });
      f.if(
        i32.eq(columns, width),
        () => tile(c, strideC, first),
        () => {
          const row = f.local("i32");
          const column = f.local("i32");
          tile(edge, width * bytes, 1);
          f.for(row, 0, rows, 1, () => {
            f.for(column, 0, i32.mul(columns, bytes), bytes, () => {
              const to = f.local("i32", i32.add(c, column));
              const sum = f.local(float.type, float.scalar.load(i32.add(edge, column)));
              f.if(i32.eqz(first), () => f.set(sum, float.scalar.add(float.scalar.load(to), sum)));
              f.do(float.scalar.store(to, sum));
            });
            f.set(c, i32.add(c, strideC));
            f.set(edge, i32.add(edge, width * bytes));
          });
        },
      );
    },
  );

  module.function({ parameters: ["i32", "i32", "i32"], export: "multiply" }, (f, start, end, table) => {
    const word = Object.fromEntries(WORDS.map((name, w) => [name, f.local("i32", i32.load(table, 4 * w))])) as Record<
      (typeof WORDS)[number],
      Local<"i32">
    >;
    const { m, n, k } = word;
    const times = (count: I32) => i32.mul(count, bytes);
    const range = AXES.map((_, axis) => {
      const extent = [word.batch, m, n][axis]!;
      const from = f.local("i32", 0);
      const to = f.local("i32", extent);
      f.if(i32.eq(word.axis, axis), () => {
        f.set(from, i32.mul(start, word.unit));
        f.set(to, f.least(i32.mul(end, word.unit), extent));
      });
      return { from, to };
    }) as [Range, Range, Range];
    const [batches, rows, columns] = range;

    const slot = f.local("i32", i32.add(word.scratch, i32.mul(start, word.slotBytes)));
    const edge = f.local("i32", i32.add(slot, PANELS * panelBytes(float)));
    const packedA = f.local("i32", i32.add(edge, ROWS * width * bytes));
    const direct = f.local("i32", transposeB ? 0 : i32.leU(m, DIRECT_ROWS));
    const [rowA, stepA] = transposeA ? [bytes, times(m)] : [times(k), bytes];
    const [rowB, columnB] = transposeB ? [bytes, times(k)] : [times(n), bytes];
    const strideB = f.local("i32", transposeB ? times(k) : times(n));
    const strideA = f.local("i32", transposeA ? times(m) : times(k));
    const strideC = f.local("i32", times(n));
    const [batch, j, i, p] = [f.local("i32"), f.local("i32"), f.local("i32"), f.local("i32")];
    const [jj, ii] = [f.local("i32"), f.local("i32")];

    f.for(batch, batches.from, batches.to, 1, () => {
      const a = f.local("i32", i32.add(word.a, times(i32.mul(batch, word.strideA))));
      const b = f.local("i32", i32.add(word.b, times(i32.mul(batch, word.strideB))));
      const c = f.local("i32", i32.add(word.c, times(i32.mul(i32.mul(batch, m), n))));
      f.for(j, columns.from, columns.to, PANELS * width, () => {
        const endJ = f.least(i32.add(j, PANELS * width), columns.to);
        f.set(p, 0);
        // At least once: with k = 0 the tiles write zeros.
        f.doWhile(
          () => {
            const depth = f.least(i32.sub(k, p), DEPTH);
            const first = f.local("i32", i32.eqz(p));
            const panel = f.local("i32", slot);
            f.for(jj, j, endJ, width, () => {
              const count = f.least(i32.sub(endJ, jj), width);
              f.if(i32.eqz(i32.and(direct, i32.eq(count, width))), () => {
                const from = i32.add(b, i32.add(i32.mul(p, rowB), i32.mul(jj, columnB)));
                f.do(packB(from, strideB, depth, count, panel));
              });
              f.set(panel, i32.add(panel, panelBytes(float)));
            });
            const blockRows = transposeA ? BLOCK_ROWS : -1;
            f.set(i, rows.from);
            f.while(i32.ltU(i, rows.to), () => {
              const endI = f.local("i32", rows.to);
              if (packA !== undefined) {
                f.set(endI, f.least(i32.add(i, blockRows), rows.to));
                const to = f.local("i32", packedA);
                f.for(ii, i, endI, ROWS, () => {
                  const from = i32.add(a, i32.add(i32.mul(ii, rowA), i32.mul(p, stepA)));
                  f.do(packA(from, strideA, depth, f.least(i32.sub(endI, ii), ROWS), to));
                  f.set(to, i32.add(to, DEPTH * ROWS * bytes));
                });
              }
              const panelA = f.local("i32", packedA);
              f.for(ii, i, endI, ROWS, () => {
                const count = f.least(i32.sub(endI, ii), ROWS);
                if (!transposeA) f.set(panelA, i32.add(a, i32.add(i32.mul(ii, rowA), i32.mul(p, stepA))));
                const to = f.local("i32", i32.add(c, i32.add(i32.mul(ii, strideC), times(j))));
                f.set(panel, slot);
                f.for(jj, j, endJ, width, () => {
                  const columnCount = f.least(i32.sub(endJ, jj), width);
                  const from = f.local("i32", panel);
                  const stepB = f.local("i32", VECTORS * 16);
                  f.if(i32.and(direct, i32.eq(columnCount, width)), () => {
                    f.set(from, i32.add(b, i32.add(i32.mul(p, rowB), i32.mul(jj, columnB))));
                    f.set(stepB, strideB);
                  });
                  f.do(multiply(count, panelA, strideA, from, stepB, depth, to, strideC, first, columnCount, edge));
                  f.set(panel, i32.add(panel, panelBytes(float)));
                  f.set(to, i32.add(to, width * bytes));
                });
                if (transposeA) f.set(panelA, i32.add(panelA, DEPTH * ROWS * bytes));
              });
              f.set(i, endI);
            });
            f.set(p, i32.add(p, DEPTH));
          },
          i32.ltU(p, k),
        );
      });
    });
  });
  return module;
}

interface Range {
  readonly from: Local<"i32">;
  readonly to: Local<"i32">;
}

export const matmul: KernelSource<"matmul"> = {
  emit,
  launch({ kernel, a, b, output, batch, m, n, k, strideA, strideB }, execution) {
    if (batch * m * n === 0) return;
    const { dtype, transposeA } = kernel.spec;
    const float = floatOf(dtype);
    const axis = batch >= STRIPES ? "batch" : m > n ? "rows" : "columns";
    const [extent, grain] = {
      batch: [batch, 1],
      rows: [m, ROWS],
      columns: [n, panelColumns(float)],
    }[axis] as [number, number];
    const unit = grain * Math.ceil(Math.ceil(extent / grain) / STRIPES);
    const range = Math.ceil(extent / unit);

    const width = panelColumns(float);
    const bytesA = transposeA ? BLOCK_ROWS * DEPTH * float.bytes : 0;
    const slotBytes = PANELS * panelBytes(float) + ROWS * width * float.bytes + bytesA;
    const values: Record<(typeof WORDS)[number], number> = {
      a: execution.address(a),
      b: execution.address(b),
      c: execution.address(output),
      ...{ m, n, k, batch, strideA, strideB },
      axis: AXES.indexOf(axis),
      unit,
      scratch: execution.scratch(range * slotBytes),
      slotBytes,
    };
    const table = execution.table(WORDS.map((name) => values[name]));
    execution.run("multiply", { range, work: batch * m * n * Math.max(k, 1) }, table);
  },
};
