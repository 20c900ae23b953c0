/**
 * Matrix product, after Goto & van de Geijn (2008): blocks of B are packed into panels that tiles of C stream through.
 * Every element of C is a chain over each piece of k, and the sum of these in order, whatever its tile or thread.
 */
import type { ComputeDType, Program, Spec, Window2d } from "@opt/core/backend";
import { type FunctionBuilder, i32, type Local, ModuleBuilder, type Operand } from "../../assembler";
import type { KernelSource, Target } from "../../kernel";
import { type Float, floatOf } from "../float";
import { costOf, emitRow } from "../map";
import { emitColumns, runColumns } from "../reduce/reduce";
import { readWords } from "../words";
import { depthOf, emitPackA, emitPackB, panelBytes, panelColumns, rowBytesOfA } from "./pack";
import { BLOCK_TILES, PANELS_BYTES, PRODUCT_WORDS, shareOut, WORDS, type Words } from "./share-out";
import { emitTile, TILE_VECTORS, tileShape } from "./tile";

type I32 = Operand<"i32">;

/** Up to this many rows it does not pay to pack a B that is not transposed. */
const DIRECT_ROWS = 12;
interface Range {
  readonly from: Local<"i32">;
  readonly to: Local<"i32">;
}

type Form = Omit<Spec<"matmul">, "kind">;

/** (start, end, table, ...scalars of the epilogue): the stripes `start` to `end` of a product. */
export function emitProduct(
  module: ModuleBuilder,
  { transposeA, transposeB, dtype, epilogue, windows }: Form,
  target: Target,
  name?: string,
  emitPackWindows?: typeof emitPackB,
) {
  const float = floatOf(dtype);
  const { bytes } = float;
  const width = panelColumns(float);
  const panels = PANELS_BYTES / panelBytes(float);
  const tileRows = tileShape(target).rows;
  const multiplyPanel = emitPanelProduct(module, float, target);
  const packB = (windows ? emitPackWindows! : emitPackB)(module, float, transposeB);
  const packA = transposeA ? emitPackA(module, float) : undefined;
  const finish = epilogue && emitEpilogue(module, epilogue, float.type, target);

  const exported = name === undefined ? {} : { export: name };
  const scalarTypes = epilogue?.scalars.map(() => "f64" as const) ?? [];
  const parameters = ["i32", "i32", "i32", ...scalarTypes] as const;
  return module.function({ parameters, ...exported }, (f, start, end, table, ...scalars) => {
    const words = readWords(f, table, WORDS);
    const { m, k } = words;
    const [batches, rows, columns] = rangesOf(f, words, start, end);
    const slot = f.local("i32", i32.add(words.scratch, i32.mul(start, words.slotBytes)));
    const edge = f.local("i32", i32.add(slot, words.panelsBytes));
    const packedA = f.local("i32", i32.add(edge, tileRows * width * bytes));

    const rowBytesA = f.local("i32", i32.mul(words.rowA, bytes));
    const rowBytesB = f.local("i32", i32.mul(words.rowB, bytes));
    const rowBytesC = f.local("i32", i32.mul(words.rowC, bytes));
    const direct = f.local("i32", transposeB || windows ? 0 : i32.leU(m, DIRECT_ROWS));
    const element = (origin: I32, row: I32, rowBytes: I32, column: I32) =>
      i32.add(origin, i32.add(i32.mul(row, rowBytes), i32.mul(column, bytes)));

    const batch = f.local("i32");
    f.for(batch, batches.from, batches.to, 1, () => {
      const a = f.local("i32", element(words.a, 0, 0, i32.mul(batch, words.strideA)));
      const b = f.local("i32", element(words.b, 0, 0, i32.mul(batch, words.strideB)));
      const c = f.local("i32", element(words.c, i32.mul(batch, m), rowBytesC, 0));
      const addressA = (i: I32, p: I32) => (transposeA ? element(a, p, rowBytesA, i) : element(a, i, rowBytesA, p));

      forBlocks(f, columns.from, columns.to, panels * width, (firstColumn, lastColumn) => {
        forPieces(f, k, depthOf(float), (p, depth) => {
          const first = f.local("i32", i32.eqz(p));
          /** Each panel of the block: where it begins, how many columns it has, and whether B itself will do. */
          const forPanels = (
            body: (j: Local<"i32">, panel: Local<"i32">, count: Local<"i32">, inPlace: I32) => void,
          ) => {
            const panel = f.local("i32", slot);
            const j = f.local("i32");
            f.for(j, firstColumn, lastColumn, width, () => {
              const count = f.least(i32.sub(lastColumn, j), width);
              body(j, panel, count, i32.and(direct, i32.eq(count, width)));
              f.increase(panel, panelBytes(float));
            });
          };
          forPanels((j, panel, count, inPlace) => {
            f.if(i32.eqz(inPlace), () => f.do(packB(b, rowBytesB, p, j, depth, count, panel)));
          });
          forBlocks(f, rows.from, rows.to, packA === undefined ? -1 : BLOCK_TILES * tileRows, (firstRow, lastRow) => {
            if (packA !== undefined) {
              f.do(packA(addressA(firstRow, p), rowBytesA, depth, i32.sub(lastRow, firstRow), packedA));
            }
            const i = f.local("i32");
            f.for(i, firstRow, lastRow, tileRows, () => {
              const count = f.least(i32.sub(lastRow, i), tileRows);
              const [row, strideA] = packA
                ? [element(packedA, i32.sub(i, firstRow), rowBytesOfA(float), 0), i32.const(rowBytesOfA(float))]
                : [addressA(i, p), rowBytesA];
              const rowA = f.local("i32", row);
              forPanels((j, panel, columnCount, inPlace) => {
                const from = f.local("i32", panel);
                const strideB = f.local("i32", TILE_VECTORS * 16);
                f.if(inPlace, () => {
                  f.set(from, element(b, p, rowBytesB, j));
                  f.set(strideB, rowBytesB);
                });
                const to = element(c, i, rowBytesC, j);
                f.do(
                  multiplyPanel(count, rowA, strideA, from, strideB, depth, to, rowBytesC, first, columnCount, edge),
                );
              });
            });
          });
        });
        finish?.(f, words, table, scalars, batch, rows, { from: firstColumn, to: lastColumn });
      });
    });
  });
}

/** Writes the epilogue of a block of C that is whole, from the caches. Its words: the output, then of each operand the address and byte strides. */
function emitEpilogue(module: ModuleBuilder, program: Program, dtype: ComputeDType, target: Target) {
  const row = emitRow(module, program, dtype, target);
  const { bytes } = floatOf(dtype);
  return (
    f: FunctionBuilder,
    { c, m, n }: Words,
    table: Local<"i32">,
    scalars: readonly Local<"f64">[],
    batch: Local<"i32">,
    rows: Range,
    columns: Range,
  ) => {
    const word = (index: number) => i32.load(table, 4 * (PRODUCT_WORDS + index));
    const i = f.local("i32");
    f.for(i, rows.from, rows.to, 1, () => {
      const element = i32.add(i32.mul(i32.add(i32.mul(batch, m), i), n), columns.from);
      const offset = f.local("i32", i32.mul(element, bytes));
      const operands = program.buffers.slice(1).flatMap((_, slot) => {
        const stride = (axis: number) => word(2 + 4 * slot + axis);
        const steps = [batch, i, columns.from].map((index, axis) => i32.mul(index, stride(axis)));
        return [steps.reduce((sum, step) => i32.add(sum, step), word(1 + 4 * slot)), stride(2)];
      });
      const length = i32.sub(columns.to, columns.from);
      const product = [i32.add(c, offset), i32.const(bytes)];
      f.do(row(i32.add(word(0), offset), length, ...product, ...operands, ...scalars));
    });
  };
}

/** Pieces of k as equal as can be: piece i begins at floor(k * i / pieces). Runs once at least: with k = 0 the tiles write zeros. */
function forPieces(
  f: FunctionBuilder,
  k: Local<"i32">,
  longest: number,
  body: (p: Local<"i32">, steps: Local<"i32">) => void,
): void {
  const pieces = f.local("i32", i32.add(i32.eqz(k), i32.divU(i32.add(k, longest - 1), longest)));
  const least = f.local("i32", i32.divU(k, pieces));
  const longer = f.local("i32", i32.sub(k, i32.mul(least, pieces)));
  const p = f.local("i32", 0);
  const steps = f.local("i32");
  const rest = f.local("i32", 0);
  f.doWhile(
    () => {
      f.set(steps, least);
      f.increase(rest, longer);
      f.if(i32.geU(rest, pieces), () => {
        f.decrease(rest, pieces);
        f.increase(steps, 1);
      });
      body(p, steps);
      f.increase(p, steps);
    },
    i32.ltU(p, k),
  );
}

/** Blocks of `step` from `start` to `end`, the last one maybe shorter. Runs once at least. */
function forBlocks(
  f: FunctionBuilder,
  start: I32,
  end: Local<"i32">,
  step: number,
  body: (from: Local<"i32">, to: Local<"i32">) => void,
): void {
  const from = f.local("i32", start);
  const to = f.local("i32");
  f.doWhile(
    () => {
      f.set(to, step < 0 ? end : f.least(i32.add(from, step), end));
      body(from, to);
      f.set(from, to);
    },
    i32.ltU(from, end),
  );
}

/** The part of each axis that falls to items start to end; only the axis that is shared out is cut. */
function rangesOf(f: FunctionBuilder, words: Words, start: I32, end: I32): [Range, Range, Range] {
  const extents = [words.batch, words.m, words.n];
  return extents.map((extent, axis) => {
    const from = f.local("i32", 0);
    const to = f.local("i32", extent);
    f.if(i32.eq(words.axis, axis), () => {
      f.set(from, i32.mul(start, words.unit));
      f.set(to, f.least(i32.mul(end, words.unit), extent));
    });
    return { from, to };
  }) as [Range, Range, Range];
}

/**
 * (rows, a, strideA, b, strideB, k, c, strideC, first, columns, edge): a row of tiles' one tile against one panel of B,
 * straight into C or, where C has no room for whole vectors, by way of `edge`.
 */
function emitPanelProduct(module: ModuleBuilder, float: Float, target: Target) {
  const { bytes, scalar } = float;
  const width = panelColumns(float);
  const tiles = Array.from({ length: tileShape(target).rows }, (_, r) => emitTile(module, float, target, r + 1));
  return module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"] },
    (f, rows, a, strideA, b, strideB, k, c, strideC, first, columns, edge) => {
      const into = (c: I32, strideC: I32, first: I32) => {
        tiles.forEach((tile, r) => {
          f.if(i32.eq(rows, r + 1), () => f.do(tile(a, strideA, b, strideB, k, c, strideC, first)));
        });
      };
      const isWhole = i32.eq(columns, width);
      f.if(
        isWhole,
        () => into(c, strideC, first),
        () => {
          into(edge, width * bytes, 1);
          const row = f.local("i32");
          const column = f.local("i32");
          const columnBytes = f.local("i32", i32.mul(columns, bytes));
          f.for(row, 0, rows, 1, () => {
            f.for(column, 0, columnBytes, bytes, () => {
              const to = f.local("i32", i32.add(c, column));
              const sum = f.local(float.type, scalar.load(i32.add(edge, column)));
              f.if(i32.eqz(first), () => f.set(sum, scalar.add(scalar.load(to), sum)));
              f.do(scalar.store(to, sum));
            });
            f.increase(c, strideC);
            f.increase(edge, width * bytes);
          });
        },
      );
    },
  );
}

/** Products, which read windows if they are given how: the ops that need it bring it. */
export const productOf = (
  emitPackWindows?: typeof emitPackB,
  wordsOf?: (window: Window2d) => number[],
): KernelSource<"matmul"> => ({
  emit(spec, target) {
    const module = new ModuleBuilder(target);
    emitProduct(module, spec, target, "multiply", emitPackWindows);
    if (spec.sums) emitColumns(module, floatOf(spec.dtype), false);
    return module;
  },
  launch(launch, execution) {
    const { kernel, a, b, output, batch, m, n, k, epilogue, sums, window } = launch;
    if (batch * m * n === 0) return;
    const { spec } = kernel;
    const { bytes } = floatOf(spec.dtype);
    if (sums) runColumns(execution, "sum", { input: a, output: sums, outer: 1, length: k, inner: m });
    const { range, work, words } = shareOut(
      spec,
      launch,
      execution,
      window && execution.table(wordsOf!(window)) / bytes,
    );
    // The product must not overwrite what is read after it.
    const isOperand = !epilogue?.product && epilogue?.operands.some(({ memory }) => memory === output.memory);
    words[0] = execution.address(a);
    words[1] = execution.address(b);
    words[2] = isOperand ? execution.scratch(batch * m * n * bytes) : execution.address(epilogue?.product ?? output);
    if (epilogue) words.push(execution.address(output));
    for (const [i, operand] of epilogue?.operands.entries() ?? [])
      words.push(execution.address(operand), ...epilogue!.strides[i]!.map((stride) => stride * bytes));
    const read = work + (spec.epilogue ? batch * m * n * costOf(spec.epilogue) : 0);
    execution.run("multiply", { range, work: read }, execution.table(words), ...(epilogue?.scalars ?? []));
  },
});

export const matmul = productOf();
