/**
 * Strided copies and casts. Elements of less than a word share it with others, which other invocations write:
 * they are set by two atomic operations on their own bits.
 */
import { indent, type Launch, mergeDimensions, type Slice, type Spec, sizeOf } from "@opt/core/backend";
import type { Execution, KernelSource, Target } from "../kernel";
import { isOversized } from "../memory/heaps";
import { LANES, type Parameter, type Shader } from "../shader/shader";
import { BYTES, checkStored, type StoredKind, writeConvert } from "./convert";

/** Elements of a workgroup, on GPUs. */
const BLOCK = 256;

/** The element at an index from byte `<slice>_at` on, as the low bits of a word. */
function load(slice: string, buffer: string, dtype: StoredKind, atomic: boolean): string {
  const read = (word: string) => (atomic ? `atomicLoad(&${buffer}[${word}])` : `${buffer}[${word}]`);
  const bytes = BYTES[dtype];
  if (bytes === 4) return `let bits = ${read(`(params.${slice}_at >> 2u) + read_at`)};`;
  const mask = bytes === 1 ? "0xffu" : "0xffffu";
  return [
    `let source_byte = params.${slice}_at + read_at * ${bytes}u;`,
    `let bits = (${read("source_byte >> 2u")} >> ((source_byte & 3u) * 8u)) & ${mask};`,
  ].join("\n");
}

function store(slice: string, buffer: string, dtype: StoredKind): string {
  const bytes = BYTES[dtype];
  if (bytes === 4) return `${buffer}[(params.${slice}_at >> 2u) + write_at] = convert(bits);`;
  const mask = bytes === 1 ? "0xffu" : "0xffffu";
  return [
    `let target_byte = params.${slice}_at + write_at * ${bytes}u;`,
    "let shift = (target_byte & 3u) * 8u;",
    `atomicAnd(&${buffer}[target_byte >> 2u], ~(${mask} << shift));`,
    `atomicOr(&${buffer}[target_byte >> 2u], convert(bits) << shift);`,
  ].join("\n");
}

export function copyShader(from: StoredKind, to: StoredKind, rank: number, block: number = BLOCK): Shader {
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  const params: [string, Parameter][] = [
    ["size", "u32"],
    ...axes.slice(1).map((axis): [string, Parameter] => [`shape${axis}`, "u32"]),
    ...axes.map((axis): [string, Parameter] => [`from${axis}`, "i32"]),
    ...axes.map((axis): [string, Parameter] => [`to${axis}`, "i32"]),
  ];
  const position = axes
    .slice(1)
    .reverse()
    .flatMap((axis) => [`let axis${axis} = i32(rest % params.shape${axis});`, `rest /= params.shape${axis};`]);
  const offset = (side: string) =>
    `u32(${axes.map((axis) => `${axis === 0 ? "i32(rest)" : `axis${axis}`} * params.${side}${axis}`).join(" + ")})`;
  const atomic = BYTES[to] < 4;
  return {
    name: `copy ${from} to ${to}`,
    slices: { origin: "bytes", goal: "bytes" },
    params: Object.fromEntries(params),
    atomic,
    declarations: writeConvert(from, to),
    body: (buffers) =>
      [
        `let start = group * ${block}u;`,
        `let end = min(start + ${block}u, params.size);`,
        `for (var i = start + lane; i < end; i += ${LANES}u) {`,
        ...indent([
          "var rest = i;",
          ...position,
          `let read_at = ${offset("from")};`,
          `let write_at = ${offset("to")};`,
          ...load("origin", buffers.origin!, from, atomic).split("\n"),
          ...store("goal", buffers.goal!, to).split("\n"),
        ]),
        "}",
      ].join("\n"),
  };
}

interface PreparedCopy {
  readonly from: StoredKind;
  readonly to: StoredKind;
  /** Elements are two of these: those of 64 bits are moved as they are. */
  readonly pairs: boolean;
  readonly block: number;
  readonly byRank: Map<number, Shader>;
}

export const copy: KernelSource<"copy", PreparedCopy> = {
  prepare({ from, to }: Spec<"copy">, target: Target) {
    const { grain } = target;
    const pairs = from === "f64" && to === "f64";
    if (pairs) return { ...copy.prepare({ kind: "copy", from: "i32", to: "i32" }, target), pairs };
    checkStored(from);
    checkStored(to);
    return { from, to, pairs, block: BLOCK * grain, byRank: new Map() };
  },

  launch(given: Launch<"copy">, { from, to, pairs, block, byRank }: PreparedCopy, execution: Execution) {
    const launch = pairs ? inPairs(given) : given;
    const merged = mergeDimensions(launch.shape, [launch.sourceStrides, launch.targetStrides]);
    const { shape } = merged;
    const [sourceStrides, targetStrides] = merged.strides as [number[], number[]];
    const size = sizeOf(shape);
    if (size === 0) return;
    let shader = byRank.get(shape.length);
    if (shader === undefined) {
      shader = copyShader(from, to, shape.length, block);
      byRank.set(shape.length, shader);
    }
    const params: Record<string, number> = { size };
    shape.forEach((extent, axis) => {
      params[`shape${axis}`] = extent;
      params[`from${axis}`] = sourceStrides[axis]!;
      params[`to${axis}`] = targetStrides[axis]!;
    });
    const { source, target } = launch;
    const cut = shape.length === 1 && (isOversized(source) || isOversized(target));
    const widest = Math.max(BYTES[from], BYTES[to]);
    const step = cut ? Math.max(1, Math.floor(execution.largestBinding / widest / block) - 1) * block : size;
    for (let start = 0; start < size; start += step) {
      const length = Math.min(step, size - start);
      const shown = cut ? pieceOf(source, from, start, length, sourceStrides[0]!) : inBytes(source, from);
      const place = cut ? pieceOf(target, to, start, length, targetStrides[0]!) : inBytes(target, to);
      execution.dispatch(shader, [shown, place], { ...params, size: length }, Math.ceil(length / block));
    }
  },
};

/** The same copy of halves of the elements. */
function inPairs(launch: Launch<"copy">): Launch<"copy"> {
  const halves = (slice: Slice) => ({ ...slice, length: 2 * slice.length });
  const strides = (list: readonly number[]) => [...list.map((stride) => 2 * stride), 1];
  return {
    ...launch,
    source: halves(launch.source),
    target: halves(launch.target),
    shape: [...launch.shape, 2],
    sourceStrides: strides(launch.sourceStrides),
    targetStrides: strides(launch.targetStrides),
  };
}

/** A slice whose length counts bytes, as those of shaders that address bytes do. */
function inBytes(slice: Slice, dtype: StoredKind): Slice {
  return { ...slice, length: slice.length * BYTES[dtype] };
}

function pieceOf(
  { memory, byteOffset }: Slice,
  dtype: StoredKind,
  start: number,
  length: number,
  stride: number,
): Slice {
  const bytes = BYTES[dtype];
  return {
    memory,
    byteOffset: byteOffset + start * stride * bytes,
    length: ((length - 1) * Math.abs(stride) + 1) * bytes,
  };
}
