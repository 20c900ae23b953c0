/** Comparing two checkpoints tensor by tensor, whatever their layouts and formats. */
import { check, checkOptions } from "@opt/core";
import { platform } from "#platform";
import { bytesPerElement } from "../format/dtype";
import { sameJson } from "../format/json/plain";
import { isNumeric, numberReader } from "../format/numbers";
import type { SourceTensor, TensorSource } from "../format/source";
import { Verification } from "../format/verification";
import { type Box, elementsIn, wholeOf } from "../layout/box";
import { matchesPattern } from "../layout/layout";
import { chunksOf, inBatches } from "../plan/chunks";
import { checkedPath, type FileSystem } from "../stores/file-system";
import { type ProgressCallback, reporter } from "../stores/progress";
import { type OpenOptions, useSource } from "./open";
import { PlannedSource, ReadRequest } from "./read-plan";
import { ReadPool } from "./read-pool";
import { type Selection, selectTensors } from "./select";

export interface DiffOptions extends Omit<Selection, "dtype">, Omit<OpenOptions, "step"> {
  /** Numbers a and b are equal where |a - b| <= atol + rtol |b|, or both are NaN, whatever their dtypes. Without either, bits are compared. */
  readonly atol?: number;
  readonly rtol?: number;
  /** Where `b` is, if not in `fileSystem`. */
  readonly otherFileSystem?: FileSystem;
  readonly progress?: ProgressCallback;
}

export interface Difference {
  readonly name: string;
  readonly kind: "missing in a" | "missing in b" | "shape" | "dtype" | "values";
  /** What each side has, for shapes and dtypes. */
  readonly a?: string;
  readonly b?: string;
  /** For values: how many elements differ, of how many, the first one's flat index, and the largest |a - b| where it is a number. */
  readonly count?: number;
  readonly elements?: number;
  readonly first?: number;
  readonly maxAbs?: number;
}

export interface DiffResult {
  /** Whether every tensor is equal; plain values do not count. */
  readonly equal: boolean;
  readonly tensors: number;
  readonly differences: readonly Difference[];
  /** The names among the plain values that differ. */
  readonly values: readonly string[];
}

const PIECE = 4 << 20;

/** Throws MISSING (also for a name that neither has), CORRUPT, BAD_ARGUMENT (negative tolerances), UNSUPPORTED, IO. */
export async function diffCheckpoints(a: string, b: string, options: DiffOptions = {}): Promise<DiffResult> {
  checkedPath("diffCheckpoints", a);
  checkedPath("diffCheckpoints", b);
  checkOptions("diffCheckpoints", options, {
    fileSystem: "any",
    maxHeaderBytes: "number",
    names: "array",
    verify: "boolean",
    atol: "number",
    rtol: "number",
    otherFileSystem: "any",
    progress: "function",
  });
  const { atol = 0, rtol = 0 } = options;
  const problem = () => `atol and rtol must be at least 0, got ${atol} and ${rtol}.`;
  check(atol >= 0 && rtol >= 0, "BAD_ARGUMENT", "diffCheckpoints", problem, "Fix them.");
  const fileSystem = options.otherFileSystem ?? options.fileSystem;
  const there = { ...options, ...(fileSystem && { fileSystem }) };
  return useSource(a, options, (left) =>
    useSource(b, there, (right) => diffSources(left, right, { ...options, atol, rtol })),
  );
}

async function diffSources(
  a: TensorSource,
  b: TensorSource,
  options: DiffOptions & { atol: number; rtol: number },
): Promise<DiffResult> {
  const verification = new Verification();
  const { names: _, ...all } = options;
  const meant = new Set(
    [a, b].flatMap((source) => (options.names ? namesIn(source, options.names) : [...source.tensors.keys()])),
  );
  for (const pattern of options.names ?? []) {
    const isMeant = [...meant].some((name) => matchesPattern(pattern, name));
    const problem = () => `${a.path} and ${b.path} hold no tensor ${JSON.stringify(pattern)}.`;
    check(isMeant, "MISSING", "diffCheckpoints", problem, "Check the names.");
  }
  const [inA, inB] = [a, b].map(
    (source) => new Map(selectTensors(source, all, verification).map((tensor) => [tensor.name, tensor])),
  );
  const differences: Difference[] = [];
  const isTolerant = options.atol > 0 || options.rtol > 0;
  const pairs: Pair[] = [];
  const names = [...meant].sort();
  for (const name of names) {
    const [left, right] = [inA!.get(name), inB!.get(name)];
    if (!left || !right) differences.push({ name, kind: left ? "missing in b" : "missing in a" });
    else if (`${left.shape}` !== `${right.shape}`)
      differences.push({ name, kind: "shape", a: `[${left.shape}]`, b: `[${right.shape}]` });
    else if (left.dtype !== right.dtype && !(isTolerant && isNumeric(left.dtype) && isNumeric(right.dtype)))
      differences.push({ name, kind: "dtype", a: left.dtype, b: right.dtype });
    else pairs.push(new Pair(left, right));
  }
  await comparePairs(pairs, options);
  differences.push(...pairs.flatMap((pair) => pair.difference() ?? []));
  differences.sort((x, y) => (x.name < y.name ? -1 : 1));
  const keys = [...new Set([...Object.keys(a.values), ...Object.keys(b.values)])].sort();
  const values = keys.filter((key) => !sameJson(a.values[key], b.values[key]));
  return { equal: differences.length === 0, tensors: names.length, differences, values };
}

function namesIn(source: TensorSource, patterns: readonly string[]): string[] {
  return [...source.tensors.keys()].filter((name) => patterns.some((pattern) => matchesPattern(pattern, name)));
}

/** A tensor on either side, and how far they were found to differ. */
class Pair {
  #position = 0;
  #count = 0;
  #maxAbs = 0;
  #first: number | undefined;

  constructor(
    readonly a: SourceTensor,
    readonly b: SourceTensor,
  ) {}

  /** Takes the next elements of both sides. */
  compare(left: Uint8Array, right: Uint8Array, atol: number, rtol: number): void {
    const { a, b } = this;
    if (a.dtype !== b.dtype || !platform.sameBytes(left, right)) {
      for (const { index, distance } of unequalElements(a, b, left, right, atol, rtol)) {
        this.#first ??= this.#position + index;
        this.#count++;
        if (distance > this.#maxAbs) this.#maxAbs = distance;
      }
    }
    this.#position += left.length / bytesPerElement(a.dtype);
  }

  difference(): Difference | undefined {
    if (this.#count === 0) return undefined;
    const [count, elements, first, maxAbs] = [this.#count, this.#position, this.#first!, this.#maxAbs];
    return { name: this.a.name, kind: "values", count, elements, first, maxAbs };
  }
}

/** A piece of a pair. */
class PairPart {
  readonly byteLengths: readonly [number, number];

  constructor(
    readonly pair: Pair,
    readonly sources: readonly [PlannedSource, PlannedSource],
    readonly region: Box,
  ) {
    const { a, b } = pair;
    const elements = elementsIn(region);
    this.byteLengths = [elements * bytesPerElement(a.dtype), elements * bytesPerElement(b.dtype)];
  }
}

function* partsOf(pairs: readonly Pair[]): Generator<PairPart> {
  for (const pair of pairs) {
    const { a, b } = pair;
    const sources = [new PlannedSource(a), new PlannedSource(b)] as const;
    const width = Math.max(bytesPerElement(a.dtype), bytesPerElement(b.dtype));
    for (const region of chunksOf(a.shape, PIECE / width)) yield new PairPart(pair, sources, region);
  }
}

async function comparePairs(
  pairs: readonly Pair[],
  { atol, rtol, progress }: DiffOptions & { atol: number; rtol: number },
): Promise<void> {
  const total = pairs.reduce((sum, { a }) => sum + elementsIn(wholeOf(a.shape)) * bytesPerElement(a.dtype), 0);
  const report = reporter(progress, total);
  const [pool, memory] = [new ReadPool(), [new Uint8Array(PIECE), new Uint8Array(PIECE)] as const];
  for (const parts of inBatches(partsOf(pairs), ({ byteLengths }) => Math.max(...byteLengths), PIECE)) {
    const takes = memory.map(inTurn);
    const sides = parts.map(({ byteLengths }) => byteLengths.map((length, side) => takes[side]!(length)));
    const requests = parts.flatMap(({ sources, region }, i) =>
      sources.map((source, side) => new ReadRequest(source, region, sides[i]![side]!, { extent: "chunk" })),
    );
    await pool.fill(requests);
    for (const [i, { pair }] of parts.entries()) {
      pair.compare(sides[i]![0]!, sides[i]![1]!, atol, rtol);
      report(sides[i]![0]!.length);
    }
  }
}

/** Gives out the memory piece by piece. */
function inTurn(memory: Uint8Array): (length: number) => Uint8Array {
  let filled = 0;
  return (length) => {
    filled += length;
    return memory.subarray(filled - length, filled);
  };
}

/** `distance` is NaN where one side is no number, or the dtype none that can be read as numbers. */
function* unequalElements(
  { dtype, name }: SourceTensor,
  { dtype: dtypeB }: SourceTensor,
  a: Uint8Array,
  b: Uint8Array,
  atol: number,
  rtol: number,
): Generator<{ index: number; distance: number }> {
  const width = bytesPerElement(dtype);
  const numbers = isNumeric(dtype) ? [numberReader(dtype, a, name), numberReader(dtypeB, b, name)] : undefined;
  for (let index = 0; index < a.length / width; index++) {
    let same = dtype === dtypeB;
    for (let byte = index * width; same && byte < (index + 1) * width; byte++) same &&= a[byte] === b[byte];
    if (same) continue;
    const [x, y] = numbers ? [numbers[0]!(index), numbers[1]!(index)] : [Number.NaN, Number.NaN];
    const tolerant = atol > 0 || rtol > 0;
    if (numbers && tolerant && (Math.abs(x - y) <= atol + rtol * Math.abs(y) || (Number.isNaN(x) && Number.isNaN(y))))
      continue;
    yield { index, distance: Math.abs(x - y) };
  }
}
