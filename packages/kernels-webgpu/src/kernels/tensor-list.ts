/**
 * One dispatch over a list of tensors. A table on the device tells each workgroup its tensor: first the tensor of every block,
 * then for every tensor `[first block, elements, extra, start in each buffer ..., further words ...]`, starts in elements.
 */
import { block, type Slice } from "@opt/core/backend";
import type { Execution } from "../kernel";
import { type HeapMemory, isOversized } from "../memory/heaps";
import { LANES, type Shader, unitOf } from "../shader/shader";

/** Words of a tensor's entry before its starts. */
const HEADER = 3;

export interface ListedTensor {
  readonly slices: readonly Slice[];
  /** Counts blocks, for shaders that keep a result of each: where the tensor's begin. */
  readonly extra: number;
  /** Further words of its entry. */
  readonly further?: readonly number[];
}

/** Parameters that every shader over a list has. */
export const LIST_PARAMS = { blocks: "u32", entries_at: "u32" } as const;

/** Statements that find the block's tensor: `start`, `end` and, for slot k, `at<k>`; further words count as slots. */
export function findTensor(slots: number, block: number): string {
  const starts = Array.from({ length: slots }, (_, k) => `let at${k} = table(entry + ${HEADER + k}u);`);
  return [
    "if (group >= params.blocks) { return; }",
    `let entry = params.entries_at + table(group) * ${HEADER + slots}u;`,
    `let start = (group - table(entry)) * ${block}u;`,
    `let end = min(start + ${block}u, table(entry + 1u));`,
    ...starts,
  ].join("\n");
}

/** A loop of the workgroup's invocations over the elements of the block. */
export function overBlock(lines: readonly string[]): string {
  return block(`for (var i = start + lane; i < end; i += ${LANES}u)`, lines).join("\n");
}

/** Tensors of which slot k lies in the same buffer for each k. */
interface Part {
  readonly tensors: ListedTensor[];
  /** Oversized memories are bound by ranges, in which these slices start at 0 or where the range says. */
  readonly oversized: boolean;
}

/** Splits a list so that each part fits one dispatch: by buffers, and oversized tensors by pieces that a binding shows. */
export function partsOf(
  tensors: readonly ListedTensor[],
  block: number,
  largestBinding: number,
  units: readonly number[],
): Part[] {
  const parts = new Map<string, Part>();
  const pieces: Part[] = [];
  for (const tensor of tensors) {
    const { slices } = tensor;
    const length = slices[0]?.length ?? 0;
    if (length === 0) continue;
    if (slices.some(isOversized)) {
      const step = Math.max(1, Math.floor(largestBinding / 4 / block) - 1) * block;
      for (let from = 0; from < length; from += step) {
        const piece = slices.map((slice, k) => pieceOf(slice, from, Math.min(step, length - from), units[k]!));
        pieces.push({ tensors: [{ ...tensor, slices: piece, extra: tensor.extra + from / block }], oversized: true });
      }
      continue;
    }
    let key = "";
    for (const { memory } of slices) key += `${(memory as HeapMemory).heap.id} `;
    const part = parts.get(key);
    if (part === undefined) parts.set(key, { tensors: [tensor], oversized: false });
    else part.tensors.push(tensor);
  }
  return [...parts.values(), ...pieces];
}

/** Elements `from` to `from + length` of a slice, each of so many bytes. */
export function pieceOf({ memory, byteOffset }: Slice, from: number, length: number, bytes = 4): Slice {
  return { memory, byteOffset: byteOffset + bytes * from, length };
}

/** Dispatches one part. The shader's slices are the tensors' buffers as words or halves, then `table`, then `rest`. */
export function dispatchPart(
  execution: Execution,
  owner: object,
  shader: Shader,
  { tensors, oversized }: Part,
  block: number,
  params: Readonly<Record<string, number>>,
  rest: readonly Slice[] = [],
): void {
  const { slices } = tensors[0]!;
  const units = Object.values(shader.slices).map(unitOf);
  const starts = oversized ? execution.starts(shader.name, slices, units) : undefined;
  const { words, blocks } = tableOf(tensors, block, units, starts);
  const table = execution.table(owner, words);
  execution.dispatch(shader, [...slices, table, ...rest], { ...params, blocks, entries_at: blocks }, blocks);
}

/** Blocks of a list: what its dispatch has in workgroups. */
export function blocksOf(length: number, block: number): number {
  return Math.ceil(length / block);
}

function tableOf(
  tensors: readonly ListedTensor[],
  block: number,
  units: readonly number[],
  starts: readonly number[] | undefined,
): { words: Uint32Array; blocks: number } {
  let blocks = 0;
  for (const { slices } of tensors) blocks += blocksOf(slices[0]!.length, block);
  const { slices, further = [] } = tensors[0]!;
  const slots = slices.length + further.length;
  const words = new Uint32Array(blocks + tensors.length * (HEADER + slots));
  let first = 0;
  let at = blocks;
  tensors.forEach(({ slices, extra, further = [] }, t) => {
    const { length } = slices[0]!;
    const count = blocksOf(length, block);
    words.fill(t, first, first + count);
    words[at++] = first;
    words[at++] = length;
    words[at++] = extra;
    slices.forEach(({ memory, byteOffset }, k) => {
      words[at++] = starts?.[k] ?? ((memory as HeapMemory).start + byteOffset) / units[k]!;
    });
    words.set(further, at);
    at += further.length;
    first += count;
  });
  return { words, blocks };
}
