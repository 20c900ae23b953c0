/** Strided copy and cast. */
import type { LaunchArguments } from "../backend/spec";
import type { DType } from "../dtype";
import { fromStored, toStored } from "../half";
import { elements } from "./memory";
import { forEachRow } from "./strided";

export function copy(from: DType, to: DType, launch: LaunchArguments["copy"]): void {
  const source = elements(launch.source, from);
  const target = elements(launch.target, to);
  const { shape, sourceStrides, targetStrides } = launch;
  const length = shape.at(-1) ?? 1;
  const sourceStep = sourceStrides.at(-1) ?? 1;
  const targetStep = targetStrides.at(-1) ?? 1;
  const convert = converter(from, to);
  forEachRow(shape, [sourceStrides, targetStrides], ([s, t]) => {
    if (convert === undefined && sourceStep === 1 && targetStep === 1) {
      target.set(source.subarray(s!, s! + length), t!);
      return;
    }
    for (let i = 0; i < length; i++) {
      const value = source[s! + i * sourceStep]!;
      target[t! + i * targetStep] = convert === undefined ? value : convert(value);
    }
  });
}

/** From stored element to stored element; undefined where the value needs no change. */
function converter(from: DType, to: DType): ((stored: number) => number) | undefined {
  if (from === to) return undefined;
  const value = fromStored(from);
  if (to === "bool") return (stored) => (value(stored) !== 0 ? 1 : 0);
  if (to === "i32") return saturating(value, -(2 ** 31), 2 ** 31 - 1);
  if (to === "u8") return saturating(value, 0, 255);
  const store = toStored(to);
  return (stored) => store(value(stored));
}

function saturating(value: (stored: number) => number, low: number, high: number): (stored: number) => number {
  return (stored) => {
    const x = value(stored);
    return x !== x ? 0 : Math.trunc(Math.min(Math.max(x, low), high));
  };
}
