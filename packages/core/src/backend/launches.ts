/** What launches read and write, and the same launches on other memory. */
import type { Place } from "./backend";
import type { Memory, Slice } from "./memory";
import type { Kind, Launch } from "./spec";

/** Kinds that write their `output` alone. */
type OutputKind =
  | ("map" | "reduce" | "sumSquares" | "gather" | "scatterAdd")
  | ("unfold" | "fold" | "maxPool2dGrad" | "attention");

/** The arguments that a launch of each other kind writes; it reads the others. For a rule, see `writesOf`. */
const WRITTEN: Readonly<Record<Exclude<Kind, "rule" | OutputKind>, readonly string[]>> = {
  matmul: ["output", "sums"],
  copy: ["target"],
  rows: ["outputs"],
  maxPool2d: ["output", "indices"],
  attentionGrad: ["queryGradient", "keyGradient", "valueGradient"],
  batchNorm: ["output", "mean", "variance"],
  batchNormGrad: ["inputGradient", "weightGradient", "biasGradient"],
  groupNorm: ["output", "mean", "variance"],
  groupNormGrad: ["inputGradient", "weightGradient", "biasGradient"],
  lstm: ["results", "cells", "gates"],
  lstmGrad: ["inputsGradient", "firstHiddenGradient", "firstCellGradient"],
};

function writtenBy(kind: Exclude<Kind, "rule">): readonly string[] {
  return (WRITTEN as Partial<Record<Kind, readonly string[]>>)[kind] ?? ["output"];
}

export function isSlice(value: unknown): value is Slice {
  return typeof value === "object" && value !== null && "memory" in value && "byteOffset" in value;
}

/** The slices that a launch writes. */
export function outputsOf(launch: Launch): Slice[] {
  if (launch.kind === "rule") {
    const { rule } = launch.kernel.spec;
    const isWritten = (slot: number) => slot >= rule.buffers.length || rule.writes.includes(rule.buffers[slot]!);
    return launch.tensors.flatMap((slices) => slices.filter((_, slot) => isWritten(slot)));
  }
  const written = writtenBy(launch.kind).flatMap((name) => (launch as unknown as Record<string, unknown>)[name]);
  if (launch.kind === "matmul") written.push(launch.epilogue?.product);
  return written.filter(isSlice);
}

/** The memory that a launch writes. */
export function writesOf(launch: Launch): Set<Memory> {
  return new Set(outputsOf(launch).map(({ memory }) => memory));
}

/** The memory that a launch reads. */
export function readsOf(launch: Launch): Set<Memory> {
  const read = new Set<Memory>();
  const written: readonly string[] = launch.kind === "rule" ? [] : writtenBy(launch.kind);
  const visit = (value: unknown): void => {
    if (isSlice(value)) read.add(value.memory);
    else if (Array.isArray(value)) value.forEach(visit);
  };
  for (const [name, value] of Object.entries(launch)) {
    if (!written.includes(name)) visit(value);
    if (name === "epilogue" && value) visit((value as { operands: unknown }).operands);
  }
  return read;
}

/** The same launch with its slices replaced. */
export function withSlices(launch: Launch, replace: (slice: Slice) => Slice): Launch {
  const visit = (value: unknown): unknown => {
    if (isSlice(value)) return replace(value);
    return Array.isArray(value) && value.some((item) => typeof item === "object") ? value.map(visit) : value;
  };
  const replaced: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(launch)) {
    replaced[name] =
      name === "epilogue" && value
        ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, visit(part)]))
        : visit(value);
  }
  return replaced as unknown as Launch;
}

/** The slices of a launch that are in one piece of memory. */
export function slicesIn(launch: Launch, memory: Memory): Slice[] {
  const found: Slice[] = [];
  withSlices(launch, (slice) => {
    if (slice.memory === memory) found.push(slice);
    return slice;
  });
  return found;
}

/** All memory of a launch. */
export function memoriesOf(launch: Launch): Set<Memory> {
  return new Set([...readsOf(launch), ...writesOf(launch)]);
}

/** The same launch on memory that is elsewhere now. */
export function movedLaunch(launch: Launch, now: ReadonlyMap<Memory, Place>): Launch {
  return withSlices(launch, (slice) => {
    const place = now.get(slice.memory);
    if (place === undefined) return slice;
    return { ...slice, memory: place.memory, byteOffset: slice.byteOffset + place.byteOffset };
  });
}
