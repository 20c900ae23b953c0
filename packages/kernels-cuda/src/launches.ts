/** Launches by kind: each packs the arguments of its kernel in native/cuda/kernels, in their order. */
import {
  byteSize,
  isDense,
  isRandom,
  type Kernel,
  type Kind,
  type Launch,
  mergeDimensions,
  type PlainKind,
  reach,
  rowElements,
  type StoredFormats,
  sizeOf,
  windowElements,
  withoutDraws,
} from "@opt/core/backend";
import { sliceAddress } from "./arguments";
import type { Column } from "./chunk-table";
import { FIELDS } from "./fields";
import { rowKernelNames } from "./generate/write-rows";
import { bug } from "./gpu";
import { type Launcher, rowThreads, THREADS } from "./launcher";
import { KEYS, packedFormats, packedRewrites, ruleForm, scalarsBySlot, slotsOf } from "./rule-arguments";

export interface CudaKernel<K extends Kind = Kind> extends Kernel<K> {
  /** The kernel on the GPU, of those kinds that have one of their own. */
  readonly entry?: number;
}

type Start<K extends Kind> = (on: Launcher, launch: Launch<K>) => void;

/** MAX_RANK of native/cuda/kernels/elements.cuh. */
const MAX_RANK = 16;
/** Bytes of a Partial in native/cuda/kernels/reduce.cu. */
const PARTIAL_BYTES = 16;
/** CHUNK and LANES of native/cuda/kernels/block.cuh. */
const SUM_CHUNK = 32_768;
const SUM_LANES = 16;

const entryOf = (kernel: Kernel) => (kernel as CudaKernel).entry!;

/** The fused kernels of this device. */
export const FUSES = ["batchNorm", "batchNormGrad"] as const;

type WindowKind = "unfold" | "fold" | "maxPool2d" | "maxPool2dGrad";
type OwnKind = PlainKind | (typeof FUSES)[number];

const LAUNCHES: { readonly [K in OwnKind]: Start<K> } = {
  rule(on, { kernel, tensors, scalars }) {
    const { rule, dtype } = kernel.spec;
    const [own, form] = ruleForm(kernel.spec);
    const stored: StoredFormats | undefined =
      kernel.spec.stored ?? (form === "stored" ? rule.buffers.map(() => "f32" as const) : undefined);
    const drawn = isRandom(stored?.[0]) ? stored[0] : undefined;
    checkCount("scalars", scalars.length, rule.scalars.length + (drawn ? KEYS : 0));
    const hasMirror = stored?.length === rule.buffers.length + 1;
    // A table of stored formats always has a column for the mirror; what is drawn is found there.
    const listed = stored && !hasMirror ? tensors.map((slices) => [...slices, slices[0]!]) : tensors;
    const columns: readonly Column[] = drawn
      ? [withoutDraws(drawn), ...(stored!.slice(1) as Column[]), "place"]
      : stored && !hasMirror
        ? ([...stored, stored[0]!] as Column[])
        : ((stored as Column[] | undefined) ?? rule.buffers.map(() => dtype));
    const { memory, chunks } = on.table(listed, columns);
    if (chunks === 0) return;
    on.arguments.begin().integers([memory.address, chunks]);
    if (stored) on.arguments.integers([packedFormats(stored, columns.length), packedRewrites(rule, own)]);
    const onDevice = scalars.reduce<number>((bits, scalar, s) => bits + (typeof scalar === "number" ? 0 : 2 ** s), 0);
    on.arguments.integers([on.capture?.scalarAddress ?? 0, onDevice]);
    const slots = scalarsBySlot(kernel.spec, scalars);
    for (const scalar of slots) {
      if (typeof scalar === "number") on.arguments.number(scalar);
      else on.arguments.slice(scalar, dtype, 1);
    }
    const count = Math.max(stored ? slotsOf(own) : slots.length, 1);
    for (let s = slots.length; s < count; s++) on.arguments.number(0);
    on.run(entryOf(kernel), on.blocks(chunks, 1));
  },

  map(on, { kernel, inputs, output, scalars, shape, strides }) {
    const { program, dtype } = kernel.spec;
    checkCount("scalars", scalars.length, program.scalars.length);
    checkCount("inputs", inputs.length, program.buffers.length);
    checkCount("dimensions", Math.min(shape.length, MAX_RANK), shape.length);
    const size = sizeOf(shape);
    if (size === 0) return;
    const steps = strides.map((list) =>
      list.every((stride) => stride === 0) ? 0 : isDense(shape, list) ? 1 : undefined,
    );
    const rank = steps.includes(undefined) ? shape.length : 0;
    const count = Math.max(inputs.length, 1);
    const args = on.arguments.begin().slice(output, dtype, size);
    for (const [k, input] of inputs.entries()) args.slice(input, dtype, reach(shape, strides[k]!).after);
    if (inputs.length === 0) args.integer(0);
    args.padded(
      steps.map((step) => step ?? 0),
      count,
    );
    args.integers([size, rank]).padded(shape, MAX_RANK);
    for (let k = 0; k < count; k++) args.padded(strides[k] ?? [], MAX_RANK);
    for (const scalar of scalars) args.number(scalar);
    if (scalars.length === 0) args.number(0);
    on.run(entryOf(kernel), on.blocks(size, THREADS * (16 / byteSize(dtype))));
  },

  reduce(on, launch) {
    const { kernel, outer, length, inner } = launch;
    const { op, dtype } = kernel.spec;
    const lines = outer * inner;
    if (lines === 0) return;
    const given = () => {
      FIELDS.reduce.write(on.arguments.begin(), launch);
      return on.arguments;
    };
    if (op === "sum" || op === "mean") {
      const chunks = Math.max(1, Math.ceil(length / rowsOfChunk(inner)));
      on.withScratch(lines * chunks * 8, (partials) => {
        given().integers([partials, chunks]);
        const threads = lines * chunks * (inner === 1 ? SUM_LANES : 1);
        on.run(on.kernels.named("reduce", `sum_${dtype}`), on.blocks(threads));
        given().integers([partials, chunks, op === "mean" ? length : 1]);
        on.run(on.kernels.named("reduce", `sumPartials_${dtype}`), on.blocks(lines));
      });
      return;
    }
    const { slices, acrossThreads } = cutLines(lines, length, inner, on.gpu.multiprocessors);
    const reduce = (partials: number) => {
      given().integers([partials, slices]).flag(acrossThreads);
      on.run(on.kernels.named("reduce", `${op}_${dtype}`), on.blocks(lines * slices, acrossThreads ? 1 : THREADS));
    };
    if (slices === 1) return reduce(0);
    on.withScratch(lines * slices * PARTIAL_BYTES, (partials) => {
      reduce(partials);
      given().integers([partials, slices]);
      on.run(on.kernels.named("reduce", `${op}Partials_${dtype}`), on.blocks(lines, 1), rowThreads(slices));
    });
  },

  sumSquares(on, { kernel, inputs, output }) {
    const { dtype, stored = dtype, nonFinite } = kernel.spec;
    if (inputs.length === 0) return;
    const table = on.table(
      inputs.map((input) => [input]),
      [stored],
      SUM_CHUNK,
    );
    on.withScratch(Math.max(table.chunks, 1) * 8, (partials) => {
      if (table.chunks > 0) {
        on.arguments.begin().integers([table.memory.address, table.chunks, partials]);
        on.run(
          on.kernels.named("reduce", `${nonFinite ? "nonFinite" : "sumSquares"}_${stored}`),
          on.blocks(table.chunks * SUM_LANES),
        );
      }
      on.arguments.begin().integers([partials, table.memory.address + table.startsOffset, inputs.length]);
      on.arguments.slice(output, dtype, inputs.length);
      on.run(on.kernels.named("reduce", `sumSquaresPartials_${dtype}`), on.blocks(inputs.length));
    });
  },

  matmul(on, launch) {
    const { kernel, batch, m, n } = launch;
    if (batch * m * n === 0) return;
    const { transposeA, transposeB, dtype } = kernel.spec;
    FIELDS.matmul.write(on.arguments.begin(), launch);
    const tiles = batch * Math.ceil(m / 64) * Math.ceil(n / 64);
    const form = `${transposeA ? "T" : "N"}${transposeB ? "T" : "N"}`;
    on.run(on.kernels.named("matmul", `matmul${form}_${dtype}`), on.blocks(tiles, 1));
  },

  copy(on, { kernel, source, target, shape, sourceStrides, targetStrides }) {
    const { from, to } = kernel.spec;
    const size = sizeOf(shape);
    if (size === 0) return;
    const read = reach(shape, sourceStrides);
    const sourceAddress = sliceAddress(on.allocator, source, from, read.after, read.before);
    const targetAddress = sliceAddress(on.allocator, target, to, reach(shape, targetStrides).after);
    const walk = mergeDimensions(shape, [sourceStrides, targetStrides]);
    const isDenseCopy = isDense(shape, sourceStrides) && isDense(shape, targetStrides);
    const rank = isDenseCopy ? 0 : walk.shape.length;
    checkCount("dimensions", Math.min(rank, MAX_RANK), rank);
    const { gpu } = on;
    if (isDenseCopy && from === to) {
      const bytes = size * byteSize(from);
      gpu.check(gpu.driver.cuMemcpyDtoDAsync_v2(targetAddress, sourceAddress, bytes, gpu.stream), "copying on the GPU");
      return;
    }
    on.arguments.begin().integers([sourceAddress, targetAddress, size, rank]);
    for (const list of [walk.shape, ...walk.strides]) on.arguments.padded(list, MAX_RANK);
    on.run(on.kernels.named("copy", `copy_${from}_${to}`), on.blocks(size));
  },

  gather(on, launch) {
    const { kernel, width, count } = launch;
    if (count * width === 0) return;
    FIELDS.gather.write(on.arguments.begin(), launch);
    on.run(on.kernels.named("rows-by-index", `gather_${kernel.spec.dtype}`), on.blocks(count * width));
  },

  scatterAdd(on, launch) {
    const { kernel, rows, width } = launch;
    if (width * rows === 0) return;
    // Parts of the rows, so that narrow tables keep the GPU busy too; every part reads all indices.
    const parts = Math.max(1, Math.min(rows, 256, Math.floor((on.gpu.multiprocessors * 512) / width)));
    FIELDS.scatterAdd.write(on.arguments.begin(), launch);
    on.arguments.integer(parts);
    on.run(on.kernels.named("rows-by-index", `scatterAdd_${kernel.spec.dtype}`), on.blocks(width * parts));
  },

  rows(on, { kernel, inputs, labels, outputs, scalars, rows, length, ignoreIndex }) {
    const { program, dtype } = kernel.spec;
    const needed = rowElements({ rows, length });
    const columns = outputs.filter((_, slot) => program.outputs[slot]!.kind === "columns");
    const names = rowKernelNames(program, dtype);
    const write = (partials: number) => {
      on.arguments.begin();
      for (const [list, slots] of [[program.inputs, inputs] as const, [program.outputs, outputs] as const]) {
        for (const [slot, { kind }] of list.entries()) on.arguments.slice(slots[slot]!, dtype, needed[kind]);
      }
      if (labels) on.arguments.slice(labels, "i32", rows);
      else on.arguments.integers([0]);
      on.arguments.integers([partials, rows, length, ignoreIndex]);
      checkCount("scalars", scalars.length, program.scalars.length);
      for (const scalar of scalars) on.arguments.number(scalar);
    };
    if (rows > 0 && columns.length < outputs.length) {
      write(0);
      on.run(on.kernels.named("rows", names.rows), on.blocks(rows, 1), rowThreads(length));
    }
    if (length === 0 || columns.length === 0) return;
    const chunks = Math.ceil(rows / rowsOfChunk(length));
    on.withScratch(Math.max(1, chunks) * columns.length * length * 8, (partials) => {
      write(partials);
      if (chunks > 0) on.run(on.kernels.named("rows", names.columns), on.blocks(length * chunks));
      columns.forEach((output, k) => {
        on.arguments
          .begin()
          .integers([partials + 8 * k * length])
          .slice(output, dtype, length);
        on.arguments.integers([length, chunks, columns.length]);
        on.run(on.kernels.named("columns", `columnTotals_${dtype}`), on.blocks(length));
      });
    });
  },

  batchNorm(on, launch) {
    FIELDS.batchNorm.write(on.arguments.begin(), launch);
    runChannels(on, launch);
  },

  batchNormGrad(on, launch) {
    FIELDS.batchNormGrad.write(on.arguments.begin(), launch);
    runChannels(on, launch);
  },

  unfold(on, launch) {
    FIELDS.unfold.write(on.arguments.begin(), launch);
    runWindow(on, launch, windowElements(launch.window).columns);
  },

  fold(on, launch) {
    FIELDS.fold.write(on.arguments.begin(), launch);
    runWindow(on, launch, windowElements(launch.window).image);
  },

  maxPool2d(on, launch) {
    FIELDS.maxPool2d.write(on.arguments.begin(), launch);
    runWindow(on, launch, windowElements(launch.window).pooled);
  },

  maxPool2dGrad(on, launch) {
    FIELDS.maxPool2dGrad.write(on.arguments.begin(), launch);
    runWindow(on, launch, windowElements(launch.window).image);
  },
};

export function startLaunch(on: Launcher, launch: Launch): void {
  (LAUNCHES[launch.kind as OwnKind] as Start<Kind>)(on, launch);
}

/** The rows of a chunk where columns are added up, which are so many. */
const rowsOfChunk = (columns: number) => Math.max(1, Math.floor(SUM_CHUNK / Math.min(columns, 64)));

/**
 * How lines of [outer, length, inner] are shared out: a thread a line where lines lie side by side or are short, else a block;
 * and cut into slices where there are too few of them to keep the GPU busy.
 */
export function cutLines(lines: number, length: number, inner: number, multiprocessors: number) {
  const acrossThreads = inner < 32 && length >= 64;
  const [wanted, shortest] = acrossThreads ? [multiprocessors * 4, 4096] : [multiprocessors * 1024, 64];
  const slices = Math.max(1, Math.min(Math.floor(wanted / lines), Math.ceil(length / shortest)));
  return { slices, acrossThreads };
}

/** A block a channel. */
function runChannels(on: Launcher, { kind, kernel, channels }: Launch<"batchNorm" | "batchNormGrad">): void {
  if (channels === 0) return;
  on.run(on.kernels.named("batch-norm", `${kind}_${kernel.spec.dtype}`), on.blocks(channels, 1));
}

/** A thread an element of the output. */
function runWindow(on: Launcher, { kind, kernel }: Launch<WindowKind>, elements: number): void {
  if (elements === 0) return;
  on.run(on.kernels.named("windows", `${kind}_${kernel.spec.dtype}`), on.blocks(elements));
}

function checkCount(what: string, actual: number, expected: number): void {
  if (actual !== expected) throw bug(`the kernel takes ${expected} ${what}, got ${actual}.`);
}
