/** Attention reads and writes heads where they are: copies that gather or spread them fall out. */
import type { Slice } from "../../backend/memory";
import { type HeadStrides, headShapes, type Launch } from "../../backend/spec";
import { byteSize } from "../../values/dtype";
import { sizeOf } from "../../values/shape";
import { isDense } from "../../values/strides";
import { refined, refinedStrides } from "./layout";
import type { Uses } from "./uses";

type Attention = Launch<"attention" | "attentionGrad">;
type Copy = Launch<"copy">;

/** The arguments in the order of `HeadStrides.strides`. */
const ARGUMENTS = {
  attention: ["query", "key", "value", "output"],
  attentionGrad: ["query", "key", "value", "gradient", "queryGradient", "keyGradient", "valueGradient"],
} as const;
const OUTPUTS: ReadonlySet<string> = new Set(["output", "queryGradient", "keyGradient", "valueGradient"]);

/** Elements of a copy's one side, in the dense order of the other. */
interface Box {
  readonly slice: Slice;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

export function strideHeads(uses: Uses): void {
  for (let index = 0; index < uses.length; index++) {
    const launch = uses.launch("attention", index) ?? uses.launch("attentionGrad", index);
    if (launch !== undefined && launch.heads === 1 && launch.batch > 0) placeHeads(launch, index, uses);
  }
}

function placeHeads(launch: Attention, index: number, uses: Uses): void {
  const slices = launch as unknown as Record<string, Slice>;
  const boxes = ARGUMENTS[launch.kind].map((name) => {
    const slice = slices[name]!;
    const copies = OUTPUTS.has(name) ? uses.readers(slice.memory) : uses.writers(slice.memory);
    const box = OUTPUTS.has(name) ? written(slice, index, uses) : read(slice, index, uses);
    return box && { ...box, copy: copies[0]! };
  });
  const { queries, keys, width, columns, scale, causal, batch } = launch;
  const sizes = { batch, queries, keys, width, columns, scale, causal };
  const shapes = headShapes(sizes);
  // All operands have as many heads.
  const counts = new Set(
    boxes.flatMap((box) => (box ? box.shape.map((_, axis) => sizeOf(box.shape.slice(axis))) : [])),
  );
  for (const count of counts) {
    const heads = count / (queries * width);
    if (!Number.isInteger(heads) || batch % heads !== 0) continue;
    const walks = boxes.map((box, i) => box && alongAxes(box, [batch / heads, heads, ...shapes[i]!]));
    const isPlaced = walks.map((walk) => walk?.[3] === 1);
    // The copy of several operands falls out if each has its place.
    const memories = ARGUMENTS[launch.kind].map((name) => slices[name]!.memory);
    const all = memories.map((memory) => memories.every((other, k) => other !== memory || isPlaced[k]));
    if (!all.some((isGiven) => isGiven)) continue;
    const strides = walks.map((walk, i) => {
      const [rows, length] = shapes[i]!;
      if (all[i]) return walk!.slice(0, 3) as unknown as HeadStrides["strides"][number];
      return [heads * rows * length, rows * length, length] as const;
    });
    const placed: Record<string, Slice> = {};
    for (const [i, name] of ARGUMENTS[launch.kind].entries()) {
      if (!all[i]) continue;
      const extents = [batch / heads, heads, ...shapes[i]!];
      const length = extents.reduce((last, extent, axis) => last + (extent - 1) * walks[i]![axis]!, 1);
      placed[name] = { ...boxes[i]!.slice, length };
    }
    const strided = { ...launch, ...placed, heads, strides: [...strides, ...launch.strides.slice(strides.length)] };
    uses.replace(index, { kind: "launch", launch: strided as Launch, scalarSource: undefined });
    for (const [i, box] of boxes.entries()) {
      const target = all[i] ? uses.launch("copy", box!.copy)?.target : undefined;
      const isWritten = OUTPUTS.has(ARGUMENTS[launch.kind][i]!);
      if (target && (isWritten || uses.readers(target.memory).length === 0)) uses.replace(box!.copy, null);
    }
    return;
  }
}

/** What is copied to a slice that a step reads; undefined where it must be copied. */
function read(slice: Slice, index: number, uses: Uses): Box | undefined {
  const writers = uses.writers(slice.memory);
  const copy = uses.launch("copy", writers[0]!);
  if (copy === undefined || writers.length > 1 || !uses.temporaries.has(slice.memory)) return undefined;
  if (uses.isWrittenBetween(copy.source.memory, writers[0]!, index) || uses.hasHostBetween(writers[0]!, index))
    return undefined;
  if (!isDense(copy.shape, copy.targetStrides)) return undefined;
  return boxOf(copy, slice, copy.target, copy.source, copy.shape, copy.sourceStrides);
}

/** Where a slice that a step writes is copied to; undefined where others read it, too. */
function written(slice: Slice, index: number, uses: Uses): Box | undefined {
  const [first, ...others] = uses.readers(slice.memory);
  const copy = first === undefined ? undefined : uses.launch("copy", first);
  const isOnlyWriter = uses.writers(slice.memory).length === 1;
  if (copy === undefined || others.length > 0 || !isOnlyWriter || !uses.temporaries.has(slice.memory)) return undefined;
  const touched = [...uses.readers(copy.target.memory), ...uses.writers(copy.target.memory)];
  if (!uses.temporaries.has(copy.target.memory) || touched.some((step) => step < first!)) return undefined;
  if (uses.hasHostBetween(index, first!)) return undefined;
  const order = copy.shape.map((_, axis) => axis).sort((a, b) => copy.sourceStrides[b]! - copy.sourceStrides[a]!);
  const [shape, source, target] = [copy.shape, copy.sourceStrides, copy.targetStrides].map((list) =>
    order.map((axis) => list[axis]!),
  );
  if (!isDense(shape!, source!)) return undefined;
  return boxOf(copy, slice, copy.source, copy.target, shape!, target!);
}

/** The elements that a slice of `dense` has on the other side. */
function boxOf(
  { kernel }: Copy,
  slice: Slice,
  dense: Slice,
  other: Slice,
  shape: readonly number[],
  strides: readonly number[],
): Box | undefined {
  const { from, to } = kernel.spec;
  const bytes = byteSize(from);
  const first = (slice.byteOffset - dense.byteOffset) / bytes;
  const axis = shape.findIndex((_, i) => sizeOf(shape.slice(i)) === slice.length);
  if (from !== to || axis < 0 || first < 0 || first % slice.length !== 0 || first >= sizeOf(shape)) return undefined;
  let offset = 0;
  let rest = first / slice.length;
  for (let i = axis - 1; i >= 0; i--) {
    offset += (rest % shape[i]!) * strides[i]!;
    rest = Math.floor(rest / shape[i]!);
  }
  const byteOffset = other.byteOffset + offset * bytes;
  return { slice: { ...other, byteOffset }, shape: shape.slice(axis), strides: strides.slice(axis) };
}

/** A stride for each axis; undefined where one needs several. */
function alongAxes({ shape, strides }: Box, extents: readonly number[]): number[] | undefined {
  const fine = refined(shape, extents);
  if (fine === undefined) return undefined;
  const steps = refinedStrides(shape, strides, fine);
  const found: number[] = [];
  let axis = fine.length - 1;
  for (const extent of extents.toReversed()) {
    let covered = 1;
    let stride = 0;
    while (covered < extent) {
      if (covered === 1) stride = steps[axis]!;
      else if (steps[axis] !== stride * covered) return undefined;
      covered *= fine[axis--]!;
    }
    found.unshift(extent === 1 && found.length === 0 ? 1 : stride);
  }
  return found;
}
