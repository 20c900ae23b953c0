/** Layouts: which rank of a mesh holds which box of each tensor. */
import { OptError } from "@opt/core";
import { type Box, describeBox, elementsIn, fits, wholeOf } from "./box";

/** The mesh axis, or axes (outermost first), that split a dimension; null leaves it whole. */
export type Split = string | readonly string[] | null;

/** How a dimension of n is cut into k parts: `balanced`, as numpy.array_split; `ceil`, as torch.chunk and DTensor. */
export type UnevenRule = "balanced" | "ceil";

export type TensorLayout =
  | "replicate"
  | readonly Split[]
  | {
      readonly split: readonly Split[];
      readonly rule?: UnevenRule;
      /** Explicit lengths of the parts of a dimension, in place of the rule. */
      readonly sizes?: readonly (readonly number[] | null)[];
      /** The whole tensor's shape, where ranks that hold uneven slices cannot ask each other. */
      readonly shape?: readonly number[];
    }
  | { readonly boxes: readonly (readonly Box[])[] };

export interface Mesh {
  readonly shape: readonly number[];
  readonly axes: readonly string[];
}

/**
 * Ranks are counted row-major over the mesh. The first pattern that matches a name wins; `*` stands for any run of characters.
 *
 * @example
 * const layout: Layout = {
 *   mesh: { shape: [2, 2], axes: ["data", "model"] },
 *   tensors: { "fc.weight": ["data", "model"], "*": "replicate" },
 * };
 */
export interface Layout {
  readonly mesh: Mesh;
  readonly tensors: { readonly [pattern: string]: TensorLayout };
  readonly rule?: UnevenRule;
}

export interface LaidOutTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** The parameter whose layout this state takes. */
  readonly follows?: string;
}

/** A box and the ranks, ascending, that hold it. */
export interface Placement {
  readonly box: Box;
  readonly ranks: readonly number[];
}

/** Every tensor split along its first dimension over all ranks, scalars replicated. */
export function defaultLayout(ranks: number): Layout {
  return { mesh: { shape: [ranks], axes: ["rank"] }, tensors: { "*": ["rank"] } };
}

function refuse(problem: string, advice: string): never {
  throw new OptError("BAD_ARGUMENT", "layout", problem, advice);
}

/** The number of ranks of a mesh. Throws BAD_ARGUMENT for a mesh that is none. */
export function ranksOf(layout: Layout): number {
  const { shape, axes } = layout.mesh ?? {};
  if (!Array.isArray(shape) || !shape.every((length) => Number.isSafeInteger(length) && length > 0)) {
    refuse(`mesh.shape must list positive whole numbers, got ${JSON.stringify(shape)}.`, "For example [2, 2].");
  }
  if (!Array.isArray(axes) || axes.length !== shape.length || new Set(axes).size !== axes.length) {
    refuse(
      `mesh.axes must name each of ${shape.length} axes once, got ${JSON.stringify(axes)}.`,
      'For example ["data", "model"].',
    );
  }
  return shape.reduce((product, length) => product * length, 1);
}

/** The half-open interval of part `part` of `parts` of a dimension. */
export function partOf(length: number, parts: number, part: number, rule: UnevenRule): [begin: number, end: number] {
  if (rule === "ceil") {
    const each = Math.ceil(length / parts);
    return [Math.min(part * each, length), Math.min((part + 1) * each, length)];
  }
  const each = Math.floor(length / parts);
  const larger = length % parts;
  return [part * each + Math.min(part, larger), (part + 1) * each + Math.min(part + 1, larger)];
}

/** `*` stands for any run of characters. */
export function matchesPattern(pattern: string, name: string): boolean {
  if (pattern === "*") return true;
  const parts = pattern.split("*");
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (parts.length === 1) return pattern === name;
  const end = name.length - last.length;
  if (first.length > end || !name.startsWith(first) || !name.endsWith(last)) return false;
  let position = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, position);
    if (found < 0 || found + part.length > end) return false;
    position = found + part.length;
  }
  return true;
}

function firstMatch(layout: Layout, name: string): [pattern: string, entry: TensorLayout] | undefined {
  return Object.entries(layout.tensors).find(([pattern]) => matchesPattern(pattern, name));
}

/**
 * The entry that governs a tensor. A state takes the one of the parameter it follows, unless a pattern is about the state itself:
 * it names it whole, or matches it and not its parameter. Throws BAD_ARGUMENT where no pattern matches.
 */
export function entryFor(layout: Layout, { name, follows }: { name: string; follows?: string }): TensorLayout {
  const own = firstMatch(layout, name);
  const parent = follows === undefined ? undefined : firstMatch(layout, follows);
  const entry = parent && !(own && (own[0] === name || !matchesPattern(own[0], follows!))) ? parent : (own ?? parent);
  if (entry) return entry[1];
  refuse(`no pattern matches tensor ${JSON.stringify(name)}.`, 'Add one, or "*": "replicate" as the last.');
}

/** How one tensor is cut: per dimension the parts and, for a rank, which of them it holds. */
interface Cut {
  readonly parts: number[];
  readonly begin: (dimension: number, part: number) => [number, number];
  readonly partsOfRank: (rank: number) => number[];
}

function cutOf(layout: Layout, tensor: LaidOutTensor, entry: Exclude<TensorLayout, { boxes: unknown }>): Cut {
  const rank = tensor.shape.length;
  const spec = entry === "replicate" ? { split: [] } : "split" in entry ? entry : { split: entry };
  const title = `tensor ${JSON.stringify(tensor.name)}`;
  const splits = rank === 0 ? [] : spec.split;
  if (splits.length > rank)
    refuse(`${title} has ${rank} dimensions, its layout splits ${splits.length}.`, "Shorten it.");
  const used = new Set<string>();
  const axesOf = tensor.shape.map((_, d) => {
    const split = splits[d] ?? null;
    const names = split === null ? [] : typeof split === "string" ? [split] : split;
    return names.map((name) => {
      const axis = layout.mesh.axes.indexOf(name);
      if (axis < 0)
        refuse(`${title} is split by ${JSON.stringify(name)}, the mesh has ${layout.mesh.axes}.`, "Fix the name.");
      if (used.has(name))
        refuse(`${title} is split twice by ${JSON.stringify(name)}.`, "An axis can split one dimension.");
      used.add(name);
      return axis;
    });
  });
  const mesh = layout.mesh.shape;
  const parts = axesOf.map((axes) => axes.reduce((product, axis) => product * mesh[axis]!, 1));
  const sizes = "sizes" in spec ? spec.sizes : undefined;
  const starts = tensor.shape.map((length, d) => {
    const given = sizes?.[d];
    if (!given) return undefined;
    const points = [0];
    for (const size of given) points.push(points.at(-1)! + size);
    if (
      given.length !== parts[d] ||
      points.at(-1) !== length ||
      given.some((size) => !Number.isSafeInteger(size) || size < 0)
    ) {
      refuse(`${title}: sizes [${given}] must be ${parts[d]} lengths that add up to ${length}.`, "Fix the sizes.");
    }
    return points;
  });
  const rule = ("rule" in spec ? spec.rule : undefined) ?? layout.rule ?? "balanced";
  if (rule !== "balanced" && rule !== "ceil") refuse(`rule must be balanced or ceil, got ${rule}.`, "Use one of them.");
  return {
    parts,
    begin(d, part) {
      const points = starts[d];
      return points ? [points[part]!, points[part + 1]!] : partOf(tensor.shape[d]!, parts[d]!, part, rule);
    },
    partsOfRank(rank) {
      const coordinates = coordinatesOf(rank, mesh);
      return axesOf.map((axes) => axes.reduce((part, axis) => part * mesh[axis]! + coordinates[axis]!, 0));
    },
  };
}

/** Row-major coordinates of a rank on a mesh. */
export function coordinatesOf(rank: number, mesh: readonly number[]): number[] {
  const coordinates = new Array<number>(mesh.length);
  let rest = rank;
  for (let axis = mesh.length - 1; axis >= 0; axis--) {
    coordinates[axis] = rest % mesh[axis]!;
    rest = Math.floor(rest / mesh[axis]!);
  }
  return coordinates;
}

function boxOf(cut: Cut, parts: readonly number[]): Box {
  const offset: number[] = [];
  const size: number[] = [];
  for (let d = 0; d < parts.length; d++) {
    const [begin, end] = cut.begin(d, parts[d]!);
    offset.push(begin);
    size.push(end - begin);
  }
  return { offset, size };
}

function explicitBoxes(
  layout: Layout,
  tensor: LaidOutTensor,
  boxes: readonly (readonly Box[])[],
): readonly (readonly Box[])[] {
  const title = `tensor ${JSON.stringify(tensor.name)}`;
  const ranks = ranksOf(layout);
  if (boxes.length !== ranks)
    refuse(`${title}: boxes must have ${ranks} lists, one per rank, got ${boxes.length}.`, "Add them.");
  const outside = boxes.flat().find((box) => !fits(box, tensor.shape));
  if (outside) refuse(`${title}: box ${describeBox(outside)} leaves the shape [${tensor.shape}].`, "Fix the box.");
  return boxes;
}

/** The boxes of a tensor that one rank holds, empty ones included. */
export function boxesOfRank(layout: Layout, tensor: LaidOutTensor, rank: number): readonly Box[] {
  const entry = entryFor(layout, tensor);
  if (typeof entry === "object" && "boxes" in entry) return explicitBoxes(layout, tensor, entry.boxes)[rank]!;
  const cut = cutOf(layout, tensor, entry);
  return [boxOf(cut, cut.partsOfRank(rank))];
}

/** Every box of a tensor that holds an element, once, in row-major order. A tensor of no elements is one empty box. */
export function boxesOf(layout: Layout, tensor: LaidOutTensor): Box[] {
  const entry = entryFor(layout, tensor);
  if (typeof entry === "object" && "boxes" in entry) return placementsOf(layout, tensor).map(({ box }) => box);
  if (elementsIn({ offset: [], size: tensor.shape }) === 0) return [wholeOf(tensor.shape)];
  const cut = cutOf(layout, tensor, entry);
  const intervals = tensor.shape.map((_, d) => {
    const all = Array.from({ length: cut.parts[d]! }, (_, part) => cut.begin(d, part));
    return all.filter(([begin, end]) => end > begin);
  });
  const rank = tensor.shape.length;
  const position = new Array<number>(rank).fill(0);
  const boxes: Box[] = [];
  let lastSize: readonly number[] | undefined;
  for (;;) {
    const offset = new Array<number>(rank);
    const size = new Array<number>(rank);
    let same = lastSize !== undefined;
    for (let d = 0; d < rank; d++) {
      const interval = intervals[d]![position[d]!]!;
      offset[d] = interval[0];
      size[d] = interval[1] - interval[0];
      same &&= size[d] === lastSize![d];
    }
    // Neighbours are mostly of one size: sharing it halves the memory of thousands of boxes.
    if (!same) lastSize = size;
    boxes.push({ offset, size: lastSize! });
    let d = rank - 1;
    for (; d >= 0; d--) {
      if (++position[d]! < intervals[d]!.length) break;
      position[d] = 0;
    }
    if (d < 0) return boxes;
  }
}

/** The boxes of `boxesOf`, each with the ranks that hold it. */
export function placementsOf(layout: Layout, tensor: LaidOutTensor): Placement[] {
  const ranks = ranksOf(layout);
  if (elementsIn({ offset: [], size: tensor.shape }) === 0) {
    return [{ box: wholeOf(tensor.shape), ranks: Array.from({ length: ranks }, (_, rank) => rank) }];
  }
  const placed = new Map<string, { box: Box; ranks: number[] }>();
  for (let rank = 0; rank < ranks; rank++) {
    for (const box of boxesOfRank(layout, tensor, rank)) {
      if (elementsIn(box) === 0) continue;
      const key = describeBox(box);
      const known = placed.get(key);
      if (known) known.ranks.push(rank);
      else placed.set(key, { box, ranks: [rank] });
    }
  }
  return [...placed.values()];
}

/**
 * The shape of the whole tensor, from the slices that ranks hold: along each dimension the lengths of its parts are added up.
 * `local` tells a rank's slice, or undefined where it holds none. Throws BAD_SHAPE where the slices do not fit each other.
 */
export function wholeShape(
  layout: Layout,
  tensor: { name: string; follows?: string; rank: number },
  local: (rank: number) => readonly number[] | undefined,
): number[] {
  const entry = entryFor(layout, tensor);
  const fail = (problem: string): never => {
    throw new OptError(
      "BAD_SHAPE",
      `tensor ${JSON.stringify(tensor.name)}`,
      problem,
      "Check the slices and the layout.",
    );
  };
  if (typeof entry === "object" && "shape" in entry && entry.shape) return [...entry.shape];
  if (typeof entry === "object" && "boxes" in entry) {
    const boxes = entry.boxes.flat();
    return Array.from({ length: tensor.rank }, (_, d) =>
      boxes.reduce((most, box) => Math.max(most, box.offset[d]! + box.size[d]!), 0),
    );
  }
  const cut = cutOf(layout, { ...tensor, shape: new Array(tensor.rank).fill(0) }, withoutSizes(entry));
  const lengths = cut.parts.map((parts) => new Array<number | undefined>(parts));
  for (let rank = 0; rank < ranksOf(layout); rank++) {
    const slice = local(rank);
    if (!slice) continue;
    cut.partsOfRank(rank).forEach((part, d) => {
      const known = lengths[d]![part];
      if (known !== undefined && known !== slice[d]) {
        fail(`rank ${rank} holds [${slice}], but another rank's same part of dimension ${d} has length ${known}.`);
      }
      lengths[d]![part] = slice[d]!;
    });
  }
  return lengths.map((parts, d) => {
    let total = 0;
    for (let part = 0; part < parts.length; part++) {
      total += parts[part] ?? fail(`no rank holds part ${part} of ${parts.length} of dimension ${d}.`);
    }
    return total;
  });
}

function withoutSizes(entry: Exclude<TensorLayout, { boxes: unknown }>): Exclude<TensorLayout, { boxes: unknown }> {
  return typeof entry === "object" && "split" in entry ? { split: entry.split } : entry;
}
