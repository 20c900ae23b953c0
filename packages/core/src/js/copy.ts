/** Strided copy and cast. */
import type { Slice } from "../backend/memory";
import type { LaunchArguments } from "../backend/spec";
import { byteSize, type DType } from "../values/dtype";
import { fromStored, toStored } from "../values/half";
import { reach } from "../values/strides";
import { elements } from "./memory";
import { forEachRow } from "./strided";

export function copy(from: DType, to: DType, launch: LaunchArguments["copy"]): void {
  const { shape, sourceStrides, targetStrides } = launch;
  const { before } = reach(shape, sourceStrides);
  const source = elements(startingEarlier(launch.source, before, from), from);
  const target = elements(launch.target, to);
  const length = shape.at(-1) ?? 1;
  const sourceStep = sourceStrides.at(-1) ?? 1;
  const targetStep = targetStrides.at(-1) ?? 1;
  const convert = converter(from, to);
  forEachRow(shape, [sourceStrides, targetStrides], ([s, t]) => {
    if (convert === undefined && sourceStep === 1 && targetStep === 1) {
      target.set(source.subarray(before + s!, before + s! + length), t!);
      return;
    }
    for (let i = 0; i < length; i++) {
      const value = source[before + s! + i * sourceStep]!;
      target[t! + i * targetStep] = convert === undefined ? value : convert(value);
    }
  });
}

function startingEarlier(slice: Slice, elements: number, dtype: DType): Slice {
  if (elements === 0) return slice;
  return {
    memory: slice.memory,
    byteOffset: slice.byteOffset - elements * byteSize(dtype),
    length: slice.length + elements,
  };
}

/** From stored element to stored element; undefined where the value needs no change. */
function converter(from: DType, to: DType): ((stored: number) => number) | undefined {
  if (from === to) return undefined;
  const value = fromStored(from);
  const store = toStored(to);
  return (stored) => store(value(stored));
}
