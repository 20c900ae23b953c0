/** Gathering rows by index, and adding rows up by index. */
import type { LaunchArguments } from "../backend/spec";
import type { ComputeDType } from "../values/dtype";
import { elements } from "./memory";

export function gather(dtype: ComputeDType, launch: LaunchArguments["gather"]): void {
  const { rows, width, count } = launch;
  const table = elements(launch.table, dtype);
  const indices = elements(launch.indices, "i32");
  const out = elements(launch.output, dtype);
  for (let i = 0; i < count; i++) {
    const row = indices[i]!;
    if (row < 0 || row >= rows) out.fill(Number.NaN, i * width, (i + 1) * width);
    else out.set(table.subarray(row * width, (row + 1) * width), i * width);
  }
}

export function scatterAdd(dtype: ComputeDType, launch: LaunchArguments["scatterAdd"]): void {
  const { rows, width, count } = launch;
  const source = elements(launch.source, dtype);
  const indices = elements(launch.indices, "i32");
  const out = elements(launch.output, dtype);
  out.fill(0);
  for (let i = 0; i < count; i++) {
    const row = indices[i]!;
    if (row < 0 || row >= rows) continue;
    for (let j = 0; j < width; j++) out[row * width + j]! += source[i * width + j]!;
  }
}
