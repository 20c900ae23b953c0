/** Which tensors of a source are meant, as which dtype, and which boxes of them: whole, by slices, or as a rank of a layout holds them. */
import { check, OptError } from "@opt/core";
import { isFloating, storedDType } from "../format/dtype";
import {
  redescribed,
  type SelectedTensor,
  type SourceTensor,
  type TensorSource,
  type Verifier,
} from "../format/source";
import { type Box, describeBox, fits, wholeOf } from "../layout/box";
import { defaultLayout, type Layout, matchesPattern, ranksOf } from "../layout/layout";
import { checkUsed } from "../layout/nearest";
import { boxesOfRank } from "../layout/placements";
import { castTensor } from "./cast";

export interface Selection {
  /** Names, or patterns with `*`; all without it. */
  readonly names?: readonly string[];
  /** Names, or patterns with `*`, to leave out. */
  readonly exclude?: readonly string[];
  /**
   * The dtype to convert to: one for all tensors of floating-point numbers with at least one dimension (counters and masks keep theirs),
   * or by name or pattern. Nothing else is converted; a Tensor of stored I64 is i32 where it holds the same numbers.
   */
  readonly dtype?: string | { readonly [pattern: string]: string };
  /** Compare checksums while reading; on by default. */
  readonly verify?: boolean;
}

/** For `checkOptions`. */
export const SELECTION_OPTIONS = {
  names: "array",
  exclude: "array",
  dtype: ["string", "object"],
  verify: "boolean",
} as const;

/** The selected tensors, checked and converted as they are read. @throws OptError BAD_ARGUMENT for a pattern that matches nothing */
export function selectTensors(
  source: TensorSource,
  selection: Omit<Selection, "exclude">,
  verification: Verifier,
): SelectedTensor[] {
  const { names, dtype, verify = true } = selection;
  rejectUnreadable(source, names);
  checkUsed("names", idlePatterns(names ?? [], source.tensors), source.tensors.keys());
  const types = typeof dtype === "object" ? Object.keys(dtype) : [];
  checkUsed("dtype", idlePatterns(types, source.tensors), source.tensors.keys());
  const meant = [...source.tensors.values()].filter(
    ({ name }) => names?.some((pattern) => matchesPattern(pattern, name)) ?? true,
  );
  return meant.map((tensor) => {
    const checked = verify ? redescribed(tensor, { verification }) : tensor;
    const wanted =
      typeof dtype === "string"
        ? dtype
        : Object.entries(dtype ?? {}).find(([pattern]) => matchesPattern(pattern, tensor.name))?.[1];
    if (wanted === undefined) return checked;
    const target = storedDType(wanted, "dtype");
    // One dtype for all is meant for weights: a counter of 1001 steps is 1000 in bf16.
    const isMeant = typeof dtype !== "string" || (tensor.shape.length > 0 && isFloating(tensor.dtype));
    return isMeant ? castTensor(checked, target) : checked;
  });
}

/** The patterns that match none of these names. */
export function idlePatterns(patterns: readonly string[], names: ReadonlyMap<string, unknown>): string[] {
  const matches = (pattern: string) => [...names.keys()].some((name) => matchesPattern(pattern, name));
  return patterns.filter((pattern) => !names.has(pattern) && !(pattern.includes("*") && matches(pattern)));
}

/** The source without the tensors that a pattern matches; patterns that matched are taken off `unused`. */
export function withoutTensors(source: TensorSource, patterns: readonly string[], unused: Set<string>): TensorSource {
  if (patterns.length === 0) return source;
  const keep = (name: string): boolean => {
    const meant = patterns.filter((pattern) => matchesPattern(pattern, name));
    for (const pattern of meant) unused.delete(pattern);
    return meant.length === 0;
  };
  const tensors = new Map([...source.tensors].filter(([name]) => keep(name)));
  const unreadable = new Map([...(source.unreadable ?? [])].filter(([name]) => keep(name)));
  return { ...source, tensors, unreadable };
}

/** @throws OptError BAD_ARGUMENT for a pattern that has matched nothing, and where no tensor is left */
export function checkExcluded(
  exclude: readonly string[],
  unused: Iterable<string>,
  sources: readonly TensorSource[],
  left: TensorSource,
): void {
  checkUsed(
    "exclude",
    unused,
    sources.flatMap(({ tensors }) => [...tensors.keys()]),
  );
  const problem = () => `it must leave a tensor, got ${JSON.stringify(exclude)}.`;
  const isLeft = exclude.length === 0 || left.tensors.size > 0;
  check(isLeft, "BAD_ARGUMENT", "exclude", problem, "Leave out fewer. names: [] loads the step and values alone.");
}

/** Tensors that nobody asked for may be of any element type; one that is asked for must be readable. */
function rejectUnreadable({ path, unreadable = new Map() }: TensorSource, names: readonly string[] | undefined): void {
  const asked = [...unreadable].filter(([name]) => names?.some((pattern) => matchesPattern(pattern, name)) ?? true);
  const [[first, reason] = []] = asked;
  const more = asked.length > 1 ? `, and ${asked.length - 1} more cannot be read either` : "";
  check(
    asked.length === 0,
    "UNSUPPORTED",
    path,
    () => `${JSON.stringify(first)} cannot be read: ${reason}${more}.`,
    "Ask for the others by names, or leave these out (exclude).",
  );
}

/** Half-open [begin, end) per dimension; null, or dimensions left out, for all of it. */
export type Slice = readonly (readonly [begin: number, end: number] | null)[];

export interface Parts {
  /** Parts of tensors, by name: only their bytes are read. */
  readonly slices?: Readonly<Record<string, Slice>>;
  /** What rank `rank` of this layout holds; without a layout, of `world` ranks that split the first dimension. */
  readonly layout?: Layout;
  readonly rank?: number;
  readonly world?: number;
}

export interface SelectedBox {
  readonly tensor: SourceTensor;
  readonly box: Box;
}

function isPair(cut: unknown): boolean {
  return Array.isArray(cut) && cut.length === 2 && cut.every((at) => Number.isSafeInteger(at));
}

/** @param parameter what the tensor is a state of. @throws OptError BAD_SHAPE for a slice that leaves its tensor, BAD_ARGUMENT for an invalid slice or rank, UNSUPPORTED for a slice of several boxes */
export function boxesWanted(tensor: SourceTensor, parts: Parts, parameter?: SourceTensor): readonly Box[] {
  const where = `tensor ${JSON.stringify(tensor.name)}`;
  const slice = parts.slices?.[tensor.name];
  if (slice !== undefined) {
    const { shape } = tensor;
    const isCut = Array.isArray(slice) && slice.every((cut: unknown) => cut === null || isPair(cut));
    check(
      isCut,
      "BAD_ARGUMENT",
      where,
      () => `its slice must list [begin, end) pairs or null, got ${JSON.stringify(slice)}.`,
      "For example [[0, 16]].",
    );
    const box = {
      offset: shape.map((_, d) => slice[d]?.[0] ?? 0),
      size: shape.map((length, d) => (slice[d] ? slice[d][1] - slice[d][0] : length)),
    };
    const isInside = slice.length <= shape.length && fits(box, shape);
    check(
      isInside,
      "BAD_SHAPE",
      where,
      () => `slice ${describeBox(box)} leaves the shape [${shape}].`,
      "Use [begin, end) pairs inside it.",
    );
    return [box];
  }
  if (parts.rank === undefined) {
    if (!parts.layout && parts.world === undefined) return [wholeOf(tensor.shape)];
    throw new OptError("BAD_ARGUMENT", "loadCheckpoint", "a layout or world needs a rank.", "Give rank.");
  }
  const layout = parts.layout ?? defaultLayout(parts.world ?? 1);
  check(
    parts.rank >= 0 && parts.rank < ranksOf(layout),
    "BAD_ARGUMENT",
    "loadCheckpoint",
    () => `rank must be in [0, ${ranksOf(layout)}), got ${parts.rank}.`,
    "Give world.",
  );
  // State of another shape than its parameter has parts of its own, or none.
  const { follows, ...own } = tensor;
  const isAlike = parameter === undefined || `${parameter.shape}` === `${tensor.shape}`;
  const boxes = boxesOfRank(layout, isAlike ? tensor : own, parts.rank);
  check(
    boxes.length <= 1,
    "UNSUPPORTED",
    where,
    () => `rank ${parts.rank} holds ${boxes.length} boxes of it.`,
    "Load them by slices.",
  );
  return boxes;
}
