/** Comparing two checkpoints tensor by tensor, whatever their layouts and formats. */
import { checkOptions, OptError } from "@opt/core";
import { platform } from "#platform";
import { bytesOf, bytesPerElement } from "../format/dtype";
import { sameJson } from "../format/json/plain";
import { isNumeric, numberReader } from "../format/numbers";
import type { SourceTensor, TensorSource } from "../format/source";
import { Verification } from "../format/verification";
import { type Rename, renamePatterns } from "../formats/names/rename";
import { type Box, elementsIn } from "../layout/box";
import { matchesPattern } from "../layout/layout";
import { naturally } from "../layout/natural-order";
import { checkUsed } from "../layout/nearest";
import { underOurNames } from "../naming/names";
import { chunksOf, inBatches } from "../plan/chunks";
import { isNative, OPEN_OPTIONS, type OpenOptions, useSource } from "../read/open";
import { PlannedSource, ReadRequest } from "../read/read-plan";
import { ReadPool } from "../read/read-pool";
import { idlePatterns, type Selection, selectTensors } from "../read/select";
import { isAddress } from "../remote/address";
import { checkedPath, type FileSystem } from "../stores/file-system";
import { type ProgressCallback, reporter } from "../stores/progress";

/** `step` and `best` choose in both. */
export interface DiffOptions extends Omit<Selection, "dtype" | "exclude">, OpenOptions {
  /**
   * Finite numbers a and b are equal where |a - b| <= atol + rtol |b|, and so are two NaN or infinities of one sign, whatever their dtypes.
   * Without either, bits are compared.
   */
  readonly atol?: number;
  readonly rtol?: number;
  /** Where `b` is, if not in `fileSystem`; an address needs none. */
  readonly otherFileSystem?: FileSystem;
  /** New names, by pattern, for the tensors of both: `{ "module.*": "*" }`. `names` means the new ones. */
  readonly rename?: Rename;
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

/** See operations.ts. */
export async function diffCheckpoints(a: string, b: string, options: DiffOptions = {}): Promise<DiffResult> {
  checkedPath("diffCheckpoints", a);
  checkedPath("diffCheckpoints", b);
  checkOptions("diffCheckpoints", options, {
    ...OPEN_OPTIONS,
    names: "array",
    rename: "object",
    verify: "boolean",
    atol: "number",
    rtol: "number",
    otherFileSystem: "any",
    progress: "function",
  });
  const { atol = 0, rtol = 0 } = options;
  const fileSystem = options.otherFileSystem ?? (isAddress(b) ? undefined : options.fileSystem);
  const there = { ...options, fileSystem };
  return useSource(a, options, (left) =>
    useSource(b, there, async (right) =>
      diffSources(...(await namedAlike([left, right], options)), { ...options, atol, rtol }),
    ),
  );
}

type Sides = [a: TensorSource, b: TensorSource];

/**
 * Both under their own names, or under those of `reshard` and `convert` where more of them are then in both.
 *
 * @throws OptError BAD_ARGUMENT for a pattern that matches no tensor of either, DUPLICATE
 */
async function namedAlike(sides: Sides, { rename = {} }: DiffOptions): Promise<Sides> {
  const idle = new Set(Object.keys(rename));
  const renamed = (sources: Sides) => sources.map((source) => renamePatterns(source, rename, idle)) as Sides;
  let found = renamed(sides);
  if (alone(found) > 0) {
    const ours = renamed((await Promise.all(sides.map(ourNames))) as Sides);
    if (alone(ours) < alone(found)) found = ours;
  }
  checkUsed("rename", idle, namesOfBoth(...sides).keys());
  return found;
}

/** How many names are in one side only. */
function alone([a, b]: Sides): number {
  return 2 * namesOfBoth(a, b).size - a.tensors.size - b.tensors.size;
}

/** Where nothing proves whose optimizer state it is, in the model's order: if it was another, the values differ. */
async function ourNames(source: TensorSource): Promise<TensorSource> {
  if (isNative(source)) return source;
  for (const naming of [{}, { parameterOrder: "model" }] as const) {
    try {
      return await underOurNames(source, naming);
    } catch (error) {
      if (!(error instanceof OptError && ["BAD_STATE", "DUPLICATE"].includes(error.code))) throw error;
    }
  }
  return source;
}

const namesOfBoth = (a: TensorSource, b: TensorSource) => new Map([...a.tensors, ...b.tensors]);

async function diffSources(a: TensorSource, b: TensorSource, options: DiffOptions & { atol: number; rtol: number }) {
  const verification = new Verification();
  const { names: _, ...rest } = options;
  const all = namesOfBoth(a, b);
  const patterns = options.names ?? ["*"];
  checkUsed("names", idlePatterns(options.names ?? [], all), all.keys());
  const [inA, inB] = [a, b].map(
    (source) => new Map(selectTensors(source, rest, verification).map((tensor) => [tensor.name, tensor])),
  );
  const differences: Difference[] = [];
  const isTolerant = options.atol > 0 || options.rtol > 0;
  const pairs: Pair[] = [];
  const names = [...all.keys()].filter((name) => patterns.some((pattern) => matchesPattern(pattern, name))).sort();
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
  for (const pair of pairs) {
    const difference = pair.difference();
    if (difference) differences.push(difference);
  }
  differences.sort((x, y) => naturally(x.name, y.name));
  const keys = [...new Set([...Object.keys(a.values), ...Object.keys(b.values)])].sort();
  const values = keys.filter((key) => !sameJson(a.values[key], b.values[key]));
  return { equal: differences.length === 0, tensors: names.length, differences, values };
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

  /** Takes the next elements of both sides. Of what is no number the largest distance is not known. */
  compare(left: Uint8Array, right: Uint8Array, atol: number, rtol: number): void {
    const { a, b } = this;
    const width = bytesPerElement(a.dtype);
    const count = left.length / width;
    if (a.dtype !== b.dtype || !platform.sameBytes(left, right)) {
      const numbers = isNumeric(a.dtype) && [numberReader(a.dtype, left, a.name), numberReader(b.dtype, right, b.name)];
      for (let index = 0; index < count; index++) {
        let isSame = a.dtype === b.dtype;
        for (let byte = index * width; isSame && byte < (index + 1) * width; byte++)
          isSame = left[byte] === right[byte];
        if (isSame) continue;
        const [x, y] = numbers ? [numbers[0]!(index), numbers[1]!(index)] : [Number.NaN, Number.NaN];
        const isNear = Number.isFinite(y) ? Math.abs(x - y) <= atol + rtol * Math.abs(y) : Object.is(x, y);
        if (numbers && (atol > 0 || rtol > 0) && isNear) continue;
        this.#first ??= this.#position + index;
        this.#count++;
        if (Math.abs(x - y) > this.#maxAbs) this.#maxAbs = Math.abs(x - y);
      }
    }
    this.#position += count;
  }

  difference(): Difference | undefined {
    if (this.#count === 0) return undefined;
    const [count, elements, first, maxAbs] = [this.#count, this.#position, this.#first!, this.#maxAbs];
    return { name: this.a.name, kind: "values", count, elements, first, maxAbs };
  }
}

interface PairPart {
  readonly pair: Pair;
  readonly sources: readonly PlannedSource[];
  readonly region: Box;
  readonly byteLengths: readonly number[];
}

function* partsOf(pairs: readonly Pair[]): Generator<PairPart> {
  for (const pair of pairs) {
    const sides = [pair.a, pair.b];
    const sources = sides.map((side) => new PlannedSource(side));
    const widths = sides.map(({ dtype }) => bytesPerElement(dtype));
    for (const region of chunksOf(pair.a.shape, PIECE / Math.max(...widths)))
      yield { pair, sources, region, byteLengths: widths.map((width) => elementsIn(region) * width) };
  }
}

async function comparePairs(
  pairs: readonly Pair[],
  { atol, rtol, progress }: DiffOptions & { atol: number; rtol: number },
): Promise<void> {
  const total = pairs.reduce((sum, { a }) => sum + bytesOf(a), 0);
  const report = reporter(progress, total);
  const [pool, memory] = [new ReadPool(), [new Uint8Array(PIECE), new Uint8Array(PIECE)]];
  for (const parts of inBatches(partsOf(pairs), ({ byteLengths }) => Math.max(...byteLengths), PIECE)) {
    const filled = [0, 0];
    const take = (side: number, length: number) => {
      filled[side]! += length;
      return memory[side]!.subarray(filled[side]! - length, filled[side]);
    };
    const read = parts.map(({ byteLengths }) => byteLengths.map((length, side) => take(side, length)));
    const requests = parts.flatMap(({ sources, region }, i) =>
      sources.map((source, side) => new ReadRequest(source, region, read[i]![side]!, { extent: "chunk" })),
    );
    await pool.fill(requests);
    for (const [i, { pair }] of parts.entries()) {
      const [left, right] = read[i]!;
      pair.compare(left!, right!, atol, rtol);
      report(left!.length);
    }
  }
}
