/** MindSpore strategy files (node_strategy.proto): how each parameter was split over the devices of a run. */
import { coordinatesOf } from "../../layout/layout";
import { ByteCursor } from "../bytes/cursor";
import { unsupported } from "../bytes/errors";
import type { ByteSource } from "../bytes/source";
import { eachField, lengthHead, readDims, readText, varint } from "./protobuf";

/** `ParallelLayouts`: the device mesh, and which of its axes splits which dimension. */
export interface MindsporeLayout {
  readonly deviceMatrix: readonly number[];
  /** Per dimension the axis that splits it, counted from the last one; -1 for none. */
  readonly tensorMap: readonly number[];
  /** Optimizer sharding: dimension 0 is split once more into `shardSize` parts, over ranks `shardStep` apart. */
  readonly shardStep: number;
  readonly shardSize: number;
}

const LARGEST_FILE = 256 * 1024 * 1024;
const LONGEST_NAME = 4096;

/** Reads a strategy file: layouts by parameter. @throws OptError CORRUPT, UNSUPPORTED */
export async function readMindsporeStrategy(source: ByteSource): Promise<Map<string, MindsporeLayout>> {
  const cursor = new ByteCursor(source);
  if (source.byteLength > LARGEST_FILE) throw cursor.corrupt(`${source.byteLength} bytes are too many for a strategy`);
  const layouts = new Map<string, MindsporeLayout>();
  await eachField(cursor, source.byteLength, async (field) => {
    if (field.number !== 3 || field.kind !== "bytes") return;
    let name: string | undefined;
    let layout: MindsporeLayout | undefined;
    await eachField(cursor, field.end, async (item) => {
      if (item.kind !== "bytes") return;
      if (item.number === 1) name = await readText(cursor, item.end, LONGEST_NAME);
      else if (item.number === 2) layout = await readLayout(cursor, item.end);
    });
    if (name === undefined || layout === undefined) throw cursor.corrupt("a layout has no name or no content");
    layouts.set(name, layout);
  });
  return layouts;
}

async function readLayout(cursor: ByteCursor, end: number): Promise<MindsporeLayout> {
  const lists = new Map<number, number[]>();
  const numbers = new Map<number, number>();
  await eachField(cursor, end, async (field) => {
    if (field.kind === "varint") numbers.set(field.number, field.value);
    else {
      const dims: number[] = [];
      lists.set(field.number, dims);
      await eachField(cursor, field.end, async (item) => {
        if (item.number === 1) await readDims(cursor, item, dims);
      });
    }
  });
  const deviceMatrix = lists.get(1) ?? [];
  const tensorMap = lists.get(2) ?? [];
  const [splitShape, indicesOffset, fieldSize] = [lists.get(3) ?? [], lists.get(4) ?? [], numbers.get(5) ?? 0];
  if (fieldSize !== 0 || splitShape.length > 0 || indicesOffset.length > 0) {
    const problem = "a parameter is split by fields or by hand-made sizes";
    throw unsupported(cursor.source.path, problem, "Merge it with MindSpore first.");
  }
  const axes = deviceMatrix.length;
  if (!deviceMatrix.every((size) => size >= 1) || !tensorMap.every((axis) => axis >= -1 && axis < axes)) {
    throw cursor.corrupt(`the layout [${tensorMap}] does not fit the devices [${deviceMatrix}]`);
  }
  return { deviceMatrix, tensorMap, shardStep: numbers.get(6) ?? 0, shardSize: numbers.get(7) ?? 0 };
}

/** Which part of a parameter a rank holds: per dimension the number of parts and the index of this one. */
export function mindsporePart(
  layout: MindsporeLayout,
  rank: number,
  dimensions: number,
): { parts: number[]; index: number[] } {
  const { deviceMatrix, tensorMap, shardStep, shardSize } = layout;
  const coordinates = coordinatesOf(rank, deviceMatrix);
  const parts = Array.from({ length: dimensions }, () => 1);
  const index = Array.from({ length: dimensions }, () => 0);
  for (let d = 0; d < dimensions; d++) {
    const axis = deviceMatrix.length - 1 - (tensorMap[d] ?? -1);
    if (axis >= deviceMatrix.length) continue;
    parts[d] = deviceMatrix[axis]!;
    index[d] = coordinates[axis]!;
  }
  if (shardSize > 0 && dimensions > 0) {
    index[0] = index[0]! * shardSize + (Math.floor(rank / Math.max(1, shardStep)) % shardSize);
    parts[0]! *= shardSize;
  }
  return { parts, index };
}

/** The bytes of a strategy file with these layouts, by MindSpore's names. */
export function mindsporeStrategy(layouts: ReadonlyMap<string, MindsporeLayout>): Uint8Array {
  const message = (number: number, bytes: readonly number[]): number[] => [
    ...lengthHead(number, bytes.length),
    ...bytes,
  ];
  // Minus one in two's complement is ten bytes.
  const signed = (n: number): number[] => (n < 0 ? [...new Array<number>(9).fill(255), 1] : varint(n));
  const dims = (list: readonly number[]): number[] => list.flatMap((dim) => [0x08, ...signed(dim)]);
  const pieces: number[][] = [[0x08, 1]];
  for (const [name, { deviceMatrix, tensorMap, shardStep, shardSize }] of layouts) {
    const numbers = [0x28, 0, 0x30, ...varint(shardStep), 0x38, ...varint(shardSize)];
    const layout = [...message(1, dims(deviceMatrix)), ...message(2, dims(tensorMap)), 0x1a, 0, 0x22, 0, ...numbers];
    pieces.push(message(3, [...message(1, [...new TextEncoder().encode(name)]), ...message(2, layout)]));
  }
  return Uint8Array.from(pieces.flat());
}
