/** How a product is cut into stripes for the threads, and what it passes on in memory. */
import type { Launch, Spec } from "@opt/core/backend";
import type { Local } from "../../assembler";
import type { Execution } from "../../kernel";
import { type Float, floatOf } from "../float";
import { panelBytes, panelColumns, rowBytesOfA } from "./pack";

/** Bytes of panels of B packed at once, and rows of a transposed A: they share the second-level cache. */
export const PANELS_BYTES = 256 << 10;
export const BLOCK_TILES = 16;

/** Threads share out stripes of C, each with its own memory for packing; a small product is one stripe. */
export const STRIPES = 16;
const SMALL = 1 << 16;
/** In the time in which other kernels read an element. */
export const MULTIPLY_ADDS = 8;

/** Rows of a tile on any target. */
const MAXIMUM_ROWS = 6;

const AXES = ["batch", "rows", "columns"] as const;
/** What a launch passes on, as i32 words in this order. Strides count elements, `rowA`, `rowB` and `rowC` from a row to the next. */
export const WORDS = [
  ...["a", "b", "c", "m", "n", "k", "batch", "strideA", "strideB", "rowA", "rowB", "rowC"],
  ...["axis", "unit", "scratch", "slotBytes", "panelsBytes"],
] as const;
type Values = Readonly<Record<(typeof WORDS)[number], number>>;
export type Words = Readonly<Record<(typeof WORDS)[number], Local<"i32">>>;

/** Stripes are cut where each part repeats least: a part packs all of B if rows are cut, all of a transposed A if columns are. */
function chooseAxis(batch: number, m: number, n: number, transposeA: boolean, width: number): (typeof AXES)[number] {
  if (batch >= STRIPES) return "batch";
  const rowsAreBetter = transposeA ? m > n : m > n && n < 8 * width;
  return rowsAreBetter ? "rows" : "columns";
}

/** Bytes that a stripe needs for packing, and of them for panels. */
export function packingBytes(float: Float, n: number, transposeA: boolean): { slotBytes: number; panelsBytes: number } {
  const width = panelColumns(float);
  const panelsBytes = Math.min(PANELS_BYTES, Math.ceil(n / width) * panelBytes(float));
  const edgeBytes = MAXIMUM_ROWS * width * float.bytes;
  const bytesA = transposeA ? BLOCK_TILES * MAXIMUM_ROWS * rowBytesOfA(float) : 0;
  return { slotBytes: panelsBytes + edgeBytes + bytesA, panelsBytes };
}

/** Words of a product, of which the first are the addresses of a, b and c. */
export const PRODUCT_WORDS = WORDS.length;

export function wordsOfProduct(values: Values): number[] {
  return WORDS.map((name) => values[name]);
}

type Sizes = Pick<Launch<"matmul">, "batch" | "m" | "n" | "k" | "strideA" | "strideB">;

/**
 * How a product is shared out, and its words, of which the addresses of a, b and c come first: they are still 0. With windows the bytes of
 * `rowB` elements are the address of their words.
 */
export function shareOut(
  { transposeA, transposeB, dtype }: Omit<Spec<"matmul">, "kind">,
  sizes: Sizes,
  execution: Execution,
  rowB = transposeB ? sizes.k : sizes.n,
) {
  const { batch, m, n, k, strideA, strideB } = sizes;
  const float = floatOf(dtype);
  const width = panelColumns(float);
  const work = batch * m * n * Math.max(k, 1);
  const axis = chooseAxis(batch, m, n, transposeA, width);
  // 30 rows are whole tiles of 5 and of 6.
  const [extent, grain] = { batch: [batch, 1], rows: [m, 30], columns: [n, width] }[axis] as [number, number];
  const unit = work < SMALL ? extent : grain * Math.ceil(extent / grain / STRIPES);
  const range = Math.ceil(extent / unit);
  const { slotBytes, panelsBytes } = packingBytes(float, n, transposeA);
  const rowA = transposeA ? m : k;
  const scratch = execution.scratch(range * slotBytes);
  // In the order of WORDS: each product makes them, and names would take longer than a small one.
  const words = [0, 0, 0, m, n, k, batch, strideA, strideB, rowA, rowB, n, AXES.indexOf(axis), unit, scratch];
  words.push(slotBytes, panelsBytes);
  return { range, work: work / MULTIPLY_ADDS, words };
}
