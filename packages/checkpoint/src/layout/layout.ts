/** Layouts: which rank of a mesh holds which box of each tensor. */
import { check, OptError } from "@opt/core";
import type { Box } from "./box";
import { isCount } from "./counts";
import { checkUsed } from "./nearest";

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
      /** Where several axes split a dimension: each cuts what the axes before it left, by the rule. Otherwise they cut it at once. */
      readonly nested?: boolean;
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

/** Every tensor split along its first dimension over all ranks, scalars replicated. */
export function defaultLayout(ranks: number): Layout {
  return { mesh: { shape: [ranks], axes: ["rank"] }, tensors: { "*": ["rank"] } };
}

export function reject(problem: string, advice: string): never {
  throw new OptError("BAD_ARGUMENT", "layout", problem, advice);
}

/** The number of ranks of a mesh. @throws OptError BAD_ARGUMENT for an invalid mesh */
export function ranksOf(layout: Layout): number {
  const { shape, axes } = layout.mesh ?? {};
  if (!Array.isArray(shape) || !shape.every((length) => Number.isSafeInteger(length) && length > 0)) {
    reject(`mesh.shape must list positive whole numbers, got ${JSON.stringify(shape)}.`, "For example [2, 2].");
  }
  if (!Array.isArray(axes) || axes.length !== shape.length || new Set(axes).size !== axes.length) {
    reject(
      `mesh.axes must name each of ${shape.length} axes once, got ${JSON.stringify(axes)}.`,
      'For example ["data", "model"].',
    );
  }
  return shape.reduce((product, length) => product * length, 1);
}

/** The layout given, or one for a number of ranks, by `make`; both may be said. @throws OptError BAD_ARGUMENT */
export function layoutFor(
  where: string,
  given: { readonly layout?: Layout; readonly ranks?: number },
  make: (ranks: number) => Layout,
): { layout: Layout; ranks: number } {
  const { ranks: said } = given;
  check(
    given.layout !== undefined || (isCount(said) && said > 0),
    "BAD_ARGUMENT",
    where,
    () => `ranks must be a positive whole number, got ${said}.`,
    "Or give a layout.",
  );
  const layout = given.layout ?? make(said!);
  const ranks = ranksOf(layout);
  check(
    said === undefined || said === ranks,
    "BAD_ARGUMENT",
    where,
    () => `the layout's mesh has ${ranks} ranks, ranks says ${said}.`,
    "Drop one.",
  );
  return { layout, ranks };
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

/** The same where each of these numbers of parts, outermost first, cuts a part of the one before it. */
function nestedPartOf(length: number, counts: readonly number[], part: number, rule: UnevenRule): [number, number] {
  let [begin, end] = [0, length];
  let below = counts.reduce((a, b) => a * b, 1);
  for (const count of counts) {
    below /= count;
    const [from, to] = partOf(end - begin, count, Math.floor(part / below) % count, rule);
    [begin, end] = [begin + from, begin + to];
  }
  return [begin, end];
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

/** The patterns of a layout: whole names by their place, and those with `*`. A layout of a model names each of its tensors. */
interface Patterns {
  readonly names: ReadonlyMap<string, number>;
  readonly wild: readonly (readonly [place: number, pattern: string])[];
}

const patternsOf = new WeakMap<Layout["tensors"], Patterns>();

function firstMatch({ tensors }: Layout, name: string): [pattern: string, entry: TensorLayout] | undefined {
  const patterns = patternsOf.get(tensors) ?? sorted(tensors);
  patternsOf.set(tensors, patterns);
  const place = patterns.names.get(name) ?? Number.POSITIVE_INFINITY;
  const earlier = patterns.wild.find(([at, pattern]) => at < place && matchesPattern(pattern, name))?.[1];
  const found = earlier ?? (patterns.names.has(name) ? name : undefined);
  return found === undefined ? undefined : [found, tensors[found]!];
}

function sorted(tensors: Layout["tensors"]): Patterns {
  const entries = [...Object.keys(tensors).entries()];
  return {
    names: new Map(entries.filter(([, pattern]) => !pattern.includes("*")).map(([place, name]) => [name, place])),
    wild: entries.filter(([, pattern]) => pattern.includes("*")),
  };
}

/**
 * The entry that governs a tensor. A state takes the one of the parameter it follows, unless a pattern is about the state itself:
 * it names it whole, or matches it and not its parameter.
 *
 * @throws OptError BAD_ARGUMENT if no pattern matches
 */
export function entryFor(layout: Layout, { name, follows }: { name: string; follows?: string }): TensorLayout {
  const own = firstMatch(layout, name);
  const parent = follows === undefined ? undefined : firstMatch(layout, follows);
  const entry = parent && !(own && (own[0] === name || !matchesPattern(own[0], follows!))) ? parent : (own ?? parent);
  if (entry) return entry[1];
  reject(`no pattern matches tensor ${JSON.stringify(name)}.`, 'Add one, or "*": "replicate" as the last.');
}

/** The words of optimizers' states, with a pattern's stars about them: a first save has none yet. */
const STATE =
  /(^|[.*])(max_)?(exp_\w+|moments?\w*|momentum_buffer|adam_[mv]|square_avg|acc_delta|grad_avg|sum|step)([.*]|$)/;

/**
 * A pattern that matches no tensor, nor the parameter that one follows, is a typo: the tensor it means would be cut by a later pattern.
 * Patterns of everything, and of state that is not there (yet), may stay.
 *
 * @param tensors all of the checkpoint's
 * @throws OptError BAD_ARGUMENT
 */
export function checkPatterns(
  { tensors: entries }: Layout,
  tensors: Iterable<{ name: string; follows?: string }>,
): void {
  const names = new Set<string>();
  for (const { name, follows } of tensors) names.add(name).add(follows ?? name);
  if (names.size === 0) return;
  for (const pattern of Object.keys(entries)) {
    if (names.has(pattern) || /^[*./]*$/.test(pattern) || STATE.test(pattern)) continue;
    let isUsed = false;
    if (pattern.includes("*")) for (const name of names) isUsed ||= matchesPattern(pattern, name);
    if (!isUsed) checkUsed("layout", [pattern], names);
  }
}

/** How one tensor is cut: per dimension the parts and, for a rank, which of them it holds. */
export interface Cut {
  readonly parts: number[];
  readonly begin: (dimension: number, part: number) => [number, number];
  readonly partsOfRank: (rank: number) => number[];
}

/** @throws OptError BAD_ARGUMENT if the layout does not fit the tensor or the mesh */
export function cutOf(layout: Layout, tensor: LaidOutTensor, entry: Exclude<TensorLayout, { boxes: unknown }>): Cut {
  const rank = tensor.shape.length;
  const spec = entry === "replicate" ? { split: [] } : "split" in entry ? entry : { split: entry };
  const title = `tensor ${JSON.stringify(tensor.name)}`;
  const splits = rank === 0 ? [] : spec.split;
  if (splits.length > rank)
    reject(`${title} has ${rank} dimensions, its layout splits ${splits.length}.`, "Shorten it.");
  const used = new Set<string>();
  const axesOf = tensor.shape.map((_, d) => {
    const split = splits[d] ?? null;
    const names = split === null ? [] : typeof split === "string" ? [split] : split;
    return names.map((name) => {
      const axis = layout.mesh.axes.indexOf(name);
      if (axis < 0)
        reject(`${title} is split by ${JSON.stringify(name)}, the mesh has ${layout.mesh.axes}.`, "Fix the name.");
      if (used.has(name))
        reject(`${title} is split twice by ${JSON.stringify(name)}.`, "An axis can split one dimension.");
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
      reject(`${title}: sizes [${given}] must be ${parts[d]} lengths that add up to ${length}.`, "Fix the sizes.");
    }
    return points;
  });
  const isNested = "nested" in spec && spec.nested === true;
  if (isNested && sizes) reject(`${title}: sizes are of parts that are not nested.`, "Drop nested, or sizes.");
  const rule = ("rule" in spec ? spec.rule : undefined) ?? layout.rule ?? "balanced";
  if (rule !== "balanced" && rule !== "ceil") reject(`rule must be balanced or ceil, got ${rule}.`, "Use one of them.");
  return {
    parts,
    begin(d, part) {
      const points = starts[d];
      if (points) return [points[part]!, points[part + 1]!];
      return nestedPartOf(tensor.shape[d]!, isNested ? axesOf[d]!.map((axis) => mesh[axis]!) : [parts[d]!], part, rule);
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

/** The box where one part of each dimension meets. */
export function boxOf(cut: Cut, parts: readonly number[]): Box {
  const offset: number[] = [];
  const size: number[] = [];
  for (let d = 0; d < parts.length; d++) {
    const [begin, end] = cut.begin(d, parts[d]!);
    offset.push(begin);
    size.push(end - begin);
  }
  return { offset, size };
}
