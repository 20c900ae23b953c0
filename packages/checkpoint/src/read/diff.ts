/** Comparing two checkpoints tensor by tensor, whatever their layouts and formats. */
import { check, checkOptions, OptError } from "@opt/core";
import { platform } from "#platform";
import { Verification } from "../format/checked";
import { bytesPerElement } from "../format/dtype";
import { sameJson } from "../format/json";
import { isNumeric, numberReader } from "../format/numbers";
import type { SourceTensor, TensorSource } from "../format/source";
import { elementsIn } from "../layout/box";
import { matchesPattern } from "../layout/layout";
import { checkedPath, type FileSystem } from "../stores/file-system";
import { type ProgressCallback, reporter } from "../stores/progress";
import { Scratch } from "../stores/scratch";
import { type OpenOptions, useSource } from "./open";
import { TensorReader } from "./reader";
import { type Selection, selectTensors } from "./select";
import { chunksOf } from "./stream";

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
  if (!(atol >= 0 && rtol >= 0)) {
    throw new OptError(
      "BAD_ARGUMENT",
      "diffCheckpoints",
      `atol and rtol must be at least 0, got ${atol} and ${rtol}.`,
      "Fix them.",
    );
  }
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
  const buffers = [new Scratch(PIECE), new Scratch(PIECE), new Scratch(PIECE)] as const;
  const names = [...meant].sort();
  const total = names.reduce((sum, name) => sum + bytesOf(inA!.get(name)), 0);
  const report = reporter(options.progress, total);
  for (const name of names) {
    const [left, right] = [inA!.get(name), inB!.get(name)];
    if (!left || !right) differences.push({ name, kind: left ? "missing in b" : "missing in a" });
    else if (`${left.shape}` !== `${right.shape}`)
      differences.push({ name, kind: "shape", a: `[${left.shape}]`, b: `[${right.shape}]` });
    else if (left.dtype !== right.dtype && !(isTolerant && isNumeric(left.dtype) && isNumeric(right.dtype)))
      differences.push({ name, kind: "dtype", a: left.dtype, b: right.dtype });
    else {
      const difference = await compare(left, right, options, buffers, report);
      if (difference) differences.push(difference);
    }
  }
  const keys = [...new Set([...Object.keys(a.values), ...Object.keys(b.values)])].sort();
  const values = keys.filter((key) => !sameJson(a.values[key], b.values[key]));
  return { equal: differences.length === 0, tensors: names.length, differences, values };
}

function namesIn(source: TensorSource, patterns: readonly string[]): string[] {
  return [...source.tensors.keys()].filter((name) => patterns.some((pattern) => matchesPattern(pattern, name)));
}

function bytesOf(tensor: SourceTensor | undefined): number {
  return tensor ? elementsIn({ offset: [], size: tensor.shape }) * bytesPerElement(tensor.dtype) : 0;
}

async function compare(
  a: SourceTensor,
  b: SourceTensor,
  { atol, rtol }: { atol: number; rtol: number },
  [scratch, bufferA, bufferB]: readonly [Scratch, Scratch, Scratch],
  report: (bytes: number) => void,
): Promise<Difference | undefined> {
  const [widthA, widthB] = [bytesPerElement(a.dtype), bytesPerElement(b.dtype)];
  const [readerA, readerB] = [new TensorReader(a, scratch), new TensorReader(b, scratch)];
  let [count, position, maxAbs] = [0, 0, 0];
  let first: number | undefined;
  for (const region of chunksOf(a.shape, PIECE / Math.max(widthA, widthB))) {
    const elements = elementsIn(region);
    const [left, right] = [bufferA.take(elements * widthA), bufferB.take(elements * widthB)];
    await readerA.read(region, left);
    await readerB.read(region, right);
    if (a.dtype !== b.dtype || !sameBytes(left, right)) {
      const unequal = unequalElements(a, b, left, right, atol, rtol);
      for (const { index, distance } of unequal) {
        first ??= position + index;
        count++;
        if (distance > maxAbs) maxAbs = distance;
      }
    }
    position += elements;
    report(left.length);
  }
  return count === 0 ? undefined : { name: a.name, kind: "values", count, elements: position, first: first!, maxAbs };
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return platform.sameBytes(a, b);
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
