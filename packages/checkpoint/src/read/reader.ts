/** Reads any regions of tensors out of the boxes that hold them: only the bytes they need, in as few reads as that takes. */

import { bytesPerElement } from "../format/dtype";
import type { SourceBox, SourceTensor, StoredFile } from "../format/source";
import { type Box, intersect } from "../layout/box";
import { SourcePlan } from "../plan/plan";
import { copyBytes, onlyRun, type Run, runsOf } from "../plan/runs";
import { allOf } from "../stores/lanes";
import type { Scratch } from "../stores/scratch";

/** Runs of at least this length are read straight to where they belong. */
const DIRECT = 64 << 10;
/** Reading over a gap of this length costs less than another read. */
const GAP = 32 << 10;
/** Reads at once. */
const LANES = 4;

/** A tensor whose boxes are checked and indexed once, however often it is read from. */
export class TensorReader {
  readonly tensor: SourceTensor;
  readonly #boxes: readonly SourceBox[];
  readonly #plan: SourcePlan;
  readonly #scratch: Scratch;

  constructor(tensor: SourceTensor, scratch: Scratch) {
    this.tensor = tensor;
    this.#boxes = tensor.boxes;
    this.#plan = new SourcePlan(tensor, this.#boxes);
    this.#scratch = scratch;
  }

  /** The boxes that together hold `region`. Throws MISSING where none does. */
  boxesOf(region: Box): SourceBox[] {
    return this.#plan.sourcesOf(region).map((index) => this.#boxes[index]!);
  }

  /** Fills `target` with `region`, row-major. Throws MISSING before reading where boxes are missing, CORRUPT, IO. */
  read(region: Box, target: Uint8Array): Promise<void> {
    return readAll([{ reader: this, region, target }], this.#scratch);
  }

  /** Reads every box that holds a part of `region` from end to end, so that its checksum is compared. */
  async verifyWhole(region: Box): Promise<void> {
    for (const box of this.boxesOf(region)) {
      for (let start = 0; start < box.byteLength; start += this.#scratch.length) {
        await box.read(this.#scratch.take(Math.min(this.#scratch.length, box.byteLength - start)), start);
      }
    }
  }
}

/** A region of a tensor and the memory it is to fill. */
export interface ReadRequest {
  readonly reader: TensorReader;
  readonly region: Box;
  readonly target: Uint8Array;
}

/**
 * What a small box gives to one request: its bytes [begin, end). As all that is made per tensor and lives until its batch is read, it
 * comes from a constructor: what a literal makes V8 makes old from the start, once it has seen much of it live, and collects late.
 */
class Part {
  constructor(
    readonly box: SourceBox,
    readonly begin: number,
    readonly end: number,
    /** Where in the file `begin` lies. */
    readonly position: number,
    readonly target: Uint8Array,
    readonly runs: readonly Run[],
  ) {}

  /** Copies the bytes to where they belong. */
  scatter(bytes: Uint8Array): void {
    for (const { from, to, length } of this.runs) copyBytes(bytes, from - this.begin, this.target, to, length);
  }
}

class KeptRun implements Run {
  readonly from: number;
  readonly to: number;
  readonly length: number;

  constructor({ from, to, length }: Run) {
    this.from = from;
    this.to = to;
    this.length = length;
  }
}

type Job = (scratch: () => Uint8Array) => Promise<void>;

/** Fills all requests. Small boxes that lie near each other in a file are read at once, whichever tensors they are of. */
export async function readAll(requests: readonly ReadRequest[], scratch: Scratch): Promise<void> {
  const jobs: Job[] = [];
  const small = new Map<StoredFile, Part[]>();
  const room = Math.floor(scratch.length / LANES);
  for (const { reader, region, target } of requests) {
    const width = bytesPerElement(reader.tensor.dtype);
    for (const box of reader.boxesOf(region)) {
      const stored = box.stored;
      const part = stored && smallPart(box, stored.begin, region, target, width, Math.min(DIRECT, room));
      if (!part) {
        jobs.push((take) => readPart(box, region, target, width, take));
        continue;
      }
      const parts = small.get(stored.file) ?? Array.of<Part>();
      if (parts.push(part) === 1) small.set(stored.file, parts);
    }
  }
  for (const [file, parts] of small) {
    for (const span of spansOf(parts, room)) jobs.push((take) => readSpan(file, span, take()));
  }
  let next = 0;
  const lane = async (number: number) => {
    const take = scratch.lane(number, LANES);
    while (next < jobs.length) await jobs[next++]!(take);
  };
  await allOf(Array.from({ length: Math.min(LANES, jobs.length) }, (_, number) => lane(number)));
}

/** Undefined where what is needed is not small. */
function smallPart(
  box: SourceBox,
  stored: number,
  region: Box,
  target: Uint8Array,
  width: number,
  most: number,
): Part | undefined {
  if (box.byteLength > most && target.length > most) return undefined;
  const shared = intersect(box, region)!;
  const only = onlyRun(box, region, shared, width);
  const runs = Array.from(only ? [only] : runsOf(box, region, shared, width), (run) => new KeptRun(run));
  const begin = runs[0]!.from;
  const end = runs.at(-1)!.from + runs.at(-1)!.length;
  if (end - begin > most) return undefined;
  return new Part(box, begin, end, stored + begin, target, runs);
}

/** Parts in the order of their bytes, in groups that are read at once. */
function* spansOf(parts: Part[], room: number): Generator<Part[]> {
  parts.sort((a, b) => a.position - b.position);
  let span: Part[] = [];
  for (const part of parts) {
    const [first, before] = [span[0], span.at(-1)];
    const length = part.end - part.begin;
    const isNear = before !== undefined && part.position - (before.position + before.end - before.begin) <= GAP;
    if (first && !(isNear && part.position + length - first.position <= room)) {
      yield span;
      span = [];
    }
    span.push(part);
  }
  if (span.length > 0) yield span;
}

async function readSpan(file: StoredFile, span: readonly Part[], scratch: Uint8Array): Promise<void> {
  const from = span[0]!.position;
  const end = span.reduce((most, { position, begin, end }) => Math.max(most, position + end - begin), from);
  const bytes = scratch.subarray(0, end - from);
  await file.read(bytes, from);
  for (const part of span) {
    const { box, begin, end, position } = part;
    const piece = bytes.subarray(position - from, position - from + end - begin);
    box.accept?.(piece, begin);
    part.scatter(piece);
  }
}

async function readPart(
  box: SourceBox,
  region: Box,
  target: Uint8Array,
  width: number,
  scratch: () => Uint8Array,
): Promise<void> {
  const runs = runsOf(box, region, intersect(box, region)!, width);
  const first = runs.next().value as Run;
  const second = runs.next();
  if (second.done) await box.read(target.subarray(first.to, first.to + first.length), first.from);
  else await scatterRuns(box, again(first, second.value, runs), target, scratch);
}

/** Reads runs that lie near each other at once, and copies each to its place. */
async function scatterRuns(
  box: SourceBox,
  runs: Iterable<Run>,
  target: Uint8Array,
  scratch: () => Uint8Array,
): Promise<void> {
  const room = scratch().length;
  let span: Run[] = [];
  const flush = async () => {
    if (span.length === 0) return;
    const begin = span[0]!.from;
    const last = span.at(-1)!;
    const bytes = scratch().subarray(0, last.from + last.length - begin);
    await box.read(bytes, begin);
    for (const { from, to, length } of span) copyBytes(bytes, from - begin, target, to, length);
    span = [];
  };
  for (const run of runs) {
    if (run.length >= DIRECT || run.length > room) {
      await flush();
      await box.read(target.subarray(run.to, run.to + run.length), run.from);
      continue;
    }
    const [first, last] = [span[0], span.at(-1)];
    const joins = last && run.from - (last.from + last.length) <= GAP;
    if (!joins || run.from + run.length - first!.from > room) await flush();
    span.push(run);
  }
  await flush();
}

function* again(first: Run, second: Run, rest: Iterable<Run>): Generator<Run> {
  yield first;
  yield second;
  yield* rest;
}
