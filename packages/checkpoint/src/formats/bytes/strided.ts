import type { OptError } from "@opt/core";
import { elementCount } from "../../layout/box";
import { isCount } from "../../layout/counts";
import { strides } from "../../plan/runs";
import { corrupt, unsupported } from "./errors";
import { type ByteSource, partOf, readBytes } from "./source";

/** A view of elements in a storage: element `i` of the tensor lies at `offset + sum(index_d * strides_d)`. */
export interface StridedView {
  readonly bytesPerElement: number;
  readonly offset: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

const LONGEST_REPEATED = 64 * 1024 * 1024;

/**
 * The view's elements as row-major bytes.
 *
 * @throws OptError CORRUPT if it leaves its storage, UNSUPPORTED if it repeats elements beyond it
 */
export function stridedSource(storage: ByteSource, view: StridedView): ByteSource {
  const { bytesPerElement: width, offset, shape, strides: steps } = view;
  const count = elementCount(shape);
  if (count === undefined || shape.length !== steps.length || ![offset, ...shape, ...steps].every(isCount)) {
    throw invalid(storage.path, view);
  }
  if (count === 0) return partOf(storage, 0, 0);
  const last = shape.reduce((sum, length, d) => sum + (length - 1) * steps[d]!, offset);
  if (!Number.isSafeInteger(last) || (last + 1) * width > storage.byteLength) throw invalid(storage.path, view);
  if (isRowMajor(shape, steps)) return partOf(storage, offset * width, count * width);
  // What `expand` made: a small file must not fill the memory.
  if (count * width > Math.max(storage.byteLength, LONGEST_REPEATED)) {
    const problem = `the view [${shape}] repeats elements of a storage of ${storage.byteLength} bytes`;
    throw unsupported(storage.path, problem, "Save a contiguous copy of the tensor.");
  }
  return {
    path: storage.path,
    byteLength: count * width,
    isChecked: storage.isChecked ?? false,
    read: (target, position) => gather(storage, view, target, position),
  };
}

function isRowMajor(shape: readonly number[], given: readonly number[]): boolean {
  const dense = strides(shape, 1);
  return shape.every((length, d) => length === 1 || given[d] === dense[d]);
}

/** Reads the smallest piece of the storage that holds the asked-for elements, and picks them from it. */
async function gather(storage: ByteSource, view: StridedView, target: Uint8Array, position: number): Promise<void> {
  const width = view.bytesPerElement;
  const first = Math.floor(position / width);
  const end = Math.ceil((position + target.byteLength) / width);
  let low = Number.POSITIVE_INFINITY;
  let high = 0;
  for (const element of elements(view, first, end)) {
    low = Math.min(low, element);
    high = Math.max(high, element);
  }
  if (end === first) return;
  const piece = await readBytes(storage, low * width, (high + 1 - low) * width);
  const dense = new Uint8Array((end - first) * width);
  let at = 0;
  for (const element of elements(view, first, end)) {
    const from = (element - low) * width;
    for (let i = 0; i < width; i++) dense[at++] = piece[from + i]!;
  }
  target.set(dense.subarray(position - first * width, position - first * width + target.byteLength));
}

function* elements({ offset, shape, strides }: StridedView, first: number, end: number): Generator<number> {
  const index = shape.map(() => 0);
  let rest = first;
  for (let d = shape.length - 1; d >= 0; d--) {
    index[d] = rest % shape[d]!;
    rest = Math.floor(rest / shape[d]!);
  }
  let element = index.reduce((sum, i, d) => sum + i * strides[d]!, offset);
  for (let n = first; n < end; n++) {
    yield element;
    for (let d = shape.length - 1; d >= 0; d--) {
      element += strides[d]!;
      if (++index[d]! < shape[d]!) break;
      element -= index[d]! * strides[d]!;
      index[d] = 0;
    }
  }
}

function invalid(path: string, { offset, shape, strides }: StridedView): OptError {
  return corrupt(path, `shape [${shape}] with strides [${strides}] from element ${offset} leaves its storage`);
}
