/** Strided copy and cast: as runs where both sides are contiguous, by blocks where it is a transpose, else element by element. */
import type { DType, LaunchArguments, Spec, StoredDType } from "@opt/core/backend";
import { byteSize, mergeDimensions, sizeOf } from "@opt/core/backend";
import { type Callable, type FunctionBuilder, i32, type Local, ModuleBuilder, memory, v128 } from "../assembler";
import { type Access, accessTo } from "../emit/stored";
import type { KernelSource, Target } from "../kernel";
import { convertElement, is16Bit } from "./convert";
import { floatOf, transpose } from "./float";
import { readWords } from "./words";

/** From this many bytes on memory.copy is worth its call. */
const LONG_RUN = 512;
/** Rows of a transpose done at once: a cache line of f32. */
const TRANSPOSE_ROWS = 16;
/** Elements of an item, roughly. */
const ITEM = 4096;

const LAYOUTS = ["runs", "transpose", "strided"] as const;
type Layout = (typeof LAYOUTS)[number];
/** (source, target, rows, columns, steps of the source by row and column, of the target by row and column), in bytes. */
type Plane = Callable<readonly ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"], "none">;
const PLANE = { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"] } as const;

function emit({ from, to }: Spec<"copy">, target: Target): ModuleBuilder {
  const module = new ModuleBuilder(target);
  const run = emitRun(module, from, to);
  const strided = emitStrided(module, from, to);
  emitPlanes(module, "runs", emitRuns(module, run));
  emitPlanes(module, "transpose", from === to && byteSize(from) >= 4 ? emitTranspose(module, from, strided) : strided);
  emitPlanes(module, "strided", strided);

  module.function(
    { parameters: ["i32", "i32", "i32", "i32"], export: "contiguous" },
    (f, start, end, source, target) => {
      const [fromBytes, toBytes] = [byteSize(from), byteSize(to)];
      const first = i32.add(source, i32.mul(start, fromBytes));
      f.do(run(first, i32.add(target, i32.mul(start, toBytes)), i32.sub(end, start)));
    },
  );
  return module;
}

/** (source, target, count): contiguous elements. */
function emitRun(module: ModuleBuilder, from: DType, to: DType) {
  return module.function({ parameters: ["i32", "i32", "i32"] }, (f, source, target, count) => {
    const walk = (elements: number, body: () => void) => {
      const steps = [
        [source, elements * byteSize(from)],
        [target, elements * byteSize(to)],
      ] as const;
      f.walk(count, elements, steps, body);
    };
    if (from === to) {
      const bytes = f.local("i32", i32.mul(count, byteSize(from)));
      f.if(i32.geU(bytes, LONG_RUN), () => {
        f.do(memory.copy(target, source, bytes));
        f.return();
      });
      walk(16 / byteSize(from), () => f.do(v128.store(target, v128.load(source))));
    }
    const isOfFloats = [from, to].every((dtype) => dtype === "f32" || is16Bit(dtype));
    if (from !== to && isOfFloats) {
      const [input, output] = [from, to].map((dtype) => accessTo(f, "f32", dtype as StoredDType)) as [Access, Access];
      walk(4, () => f.do(output.store(target, input.load(source, 0), 0)));
    }
    walk(1, () => convertElement(f, from, to, source, target));
  });
}

function emitRuns(module: ModuleBuilder, run: Callable<readonly ["i32", "i32", "i32"], "none">): Plane {
  return module.function(PLANE, (f, source, target, rows, columns, sourceRow, _sourceColumn, targetRow) => {
    const steps = [
      [source, sourceRow],
      [target, targetRow],
    ] as const;
    f.walk(rows, 1, steps, () => f.do(run(source, target, columns)));
  });
}

function emitStrided(module: ModuleBuilder, from: DType, to: DType): Plane {
  return module.function(
    PLANE,
    (f, source, target, rows, columns, sourceRow, sourceColumn, targetRow, targetColumn) => {
      const steps = [
        [source, sourceRow],
        [target, targetRow],
      ] as const;
      f.walk(rows, 1, steps, () => {
        const at = f.local("i32", source);
        const put = f.local("i32", target);
        const steps = [
          [at, sourceColumn],
          [put, targetColumn],
        ] as const;
        f.walk(f.local("i32", columns), 1, steps, () => convertElement(f, from, to, at, put));
      });
    },
  );
}

/** Rows lie together in the source, columns in the target: square blocks of vectors, the borders element by element. */
function emitTranspose(module: ModuleBuilder, dtype: DType, strided: Plane): Plane {
  const float = floatOf(dtype === "f64" ? "f64" : "f32");
  const { lanes, bytes } = float;
  return module.function(
    PLANE,
    (f, source, target, rows, columns, sourceRow, sourceColumn, targetRow, targetColumn) => {
      const whole = f.local("i32", i32.and(rows, -lanes));
      const left = f.local("i32", columns);
      const steps = [
        [source, i32.mul(sourceColumn, lanes)],
        [target, lanes * bytes],
      ] as const;
      f.walk(left, lanes, steps, () => {
        const at = columnsOf(f, source, sourceColumn, lanes);
        const put = f.local("i32", target);
        const alongRows = at.map((column) => [column, lanes * bytes] as const);
        f.walk(f.local("i32", whole), lanes, alongRows, () => {
          const block = at.map((column) => f.local("v128", v128.load(column)));
          for (const vector of transpose(f, float, block)) {
            f.do(v128.store(put, vector));
            f.increase(put, targetRow);
          }
        });
        const rest = i32.sub(rows, whole);
        f.do(strided(at[0]!, put, rest, lanes, sourceRow, sourceColumn, targetRow, targetColumn));
      });
      f.do(strided(source, target, rows, left, sourceRow, sourceColumn, targetRow, targetColumn));
    },
  );
}

function columnsOf(f: FunctionBuilder, first: Local<"i32">, step: Local<"i32">, count: number): Local<"i32">[] {
  const columns = [f.local("i32", first)];
  while (columns.length < count) columns.push(f.local("i32", i32.add(columns.at(-1)!, step)));
  return columns;
}

/** Words of a launch before those of its outer dimensions, which are (extent, step of source, step of target) each, innermost first. */
const WORDS = [
  ...["source", "target", "rows", "columns", "sourceRow", "sourceColumn", "targetRow", "targetColumn"],
  ...["rowsPerItem", "itemsPerPlane", "outerRank"],
] as const;

/** Items are groups of rows of the planes that the two innermost dimensions span. */
function emitPlanes(module: ModuleBuilder, name: Layout, plane: Plane): void {
  module.function({ parameters: ["i32", "i32", "i32"], export: name }, (f, start, end, table) => {
    const word = readWords(f, table, WORDS);
    const outer = f.local("i32", i32.add(table, 4 * WORDS.length));
    const lastOuter = f.local("i32", i32.add(outer, i32.mul(word.outerRank, 12)));
    const item = f.local("i32");
    const dimension = f.local("i32");
    f.for(item, start, end, 1, () => {
      const row = f.local("i32", i32.mul(i32.remU(item, word.itemsPerPlane), word.rowsPerItem));
      const source = f.local("i32", i32.add(word.source, i32.mul(row, word.sourceRow)));
      const target = f.local("i32", i32.add(word.target, i32.mul(row, word.targetRow)));
      const index = f.local("i32", i32.divU(item, word.itemsPerPlane));
      f.for(dimension, outer, lastOuter, 12, () => {
        const position = f.local("i32", i32.remU(index, i32.load(dimension)));
        f.increase(source, i32.mul(position, i32.load(dimension, 4)));
        f.increase(target, i32.mul(position, i32.load(dimension, 8)));
        f.set(index, i32.divU(index, i32.load(dimension)));
      });
      const rows = f.least(i32.sub(word.rows, row), word.rowsPerItem);
      const { columns, sourceRow, sourceColumn, targetRow, targetColumn } = word;
      f.do(plane(source, target, rows, columns, sourceRow, sourceColumn, targetRow, targetColumn));
    });
  });
}

interface Dimension {
  readonly extent: number;
  readonly source: number;
  readonly target: number;
}

/**
 * The walk's dimensions, innermost first. Before neighbours are merged, axes are sorted by the target's strides: other devices keep their
 * order, but here the columns must be the target's innermost, and a permuted copy may merge further.
 */
export function dimensionsOf({ shape, sourceStrides, targetStrides }: LaunchArguments["copy"]): Dimension[] {
  const axes = [...shape.keys()].sort((a, b) => Math.abs(targetStrides[a]!) - Math.abs(targetStrides[b]!)).reverse();
  const sorted = (list: readonly number[]) => axes.map((axis) => list[axis]!);
  const { shape: extents, strides } = mergeDimensions(sorted(shape), [sorted(sourceStrides), sorted(targetStrides)]);
  return extents.map((extent, d) => ({ extent, source: strides[0]![d]!, target: strides[1]![d]! })).reverse();
}

const SINGLE: Dimension = { extent: 1, source: 0, target: 0 };

export const copy: KernelSource<"copy"> = {
  emit,
  launch(launch, execution) {
    const { from, to } = launch.kernel.spec;
    const work = sizeOf(launch.shape);
    if (work === 0) return;
    const source = execution.address(launch.source);
    const target = execution.address(launch.target);
    const dimensions = dimensionsOf(launch);
    const column = dimensions.shift()!;
    const runs = work === 1 || (column.source === 1 && column.target === 1);
    if (runs && dimensions.length === 0) {
      execution.run("contiguous", { range: work, grain: 64, work }, source, target);
      return;
    }
    const acrossRows = runs ? -1 : dimensions.findIndex((dimension) => dimension.source === 1);
    const isTranspose = acrossRows >= 0 && column.target === 1;
    const [row = SINGLE] = dimensions.splice(isTranspose ? acrossRows : 0, 1);
    const layout: Layout = runs ? "runs" : isTranspose ? "transpose" : "strided";
    const rowsPerItem = isTranspose ? TRANSPOSE_ROWS : Math.ceil(ITEM / column.extent);
    const itemsPerPlane = Math.ceil(row.extent / rowsPerItem);
    const [fromBytes, toBytes] = [byteSize(from), byteSize(to)];
    // In the order of WORDS.
    const words = [source, target, row.extent, column.extent];
    words.push(row.source * fromBytes, column.source * fromBytes, row.target * toBytes, column.target * toBytes);
    words.push(rowsPerItem, itemsPerPlane, dimensions.length);
    const outer = dimensions.flatMap((d) => [d.extent, d.source * fromBytes, d.target * toBytes]);
    const range = dimensions.reduce((items, { extent }) => items * extent, itemsPerPlane);
    execution.run(layout, { range, work }, execution.table([...words, ...outer]));
  },
};
