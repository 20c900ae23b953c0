/** From regions that are wanted to reads: which bytes of which file, and where they go. Nothing here reads. */
import { type BoxFinder, type SelectedTensor, type SourceBox, storedWidth } from "../format/source";
import { type Box, elementsIn, intersect, sameBox } from "../layout/box";
import { chunksOf, nearPieces } from "../plan/chunks";
import { SourcePlan } from "../plan/plan";
import { copyBytes, onlyRun, placeIn, type Run, runLength, runsOf } from "../plan/runs";
import type { StoredFile } from "../stores/file-system";

/** Runs of at least this length are read on their own, straight to where they belong. */
const DIRECT = 64 << 10;
/** Reading over a gap of this length costs less than another read. */
const GAP = 32 << 10;
/** Read at once at most: what a store gives in memory of its own is given back soon. */
const PIECE = 4 << 20;

/** A tensor whose boxes are checked and indexed once, however often it is read from. */
export class PlannedSource {
  readonly #finder: BoxFinder;
  /** One box is one object: its checksum is taken over all requests. */
  readonly #boxes = new Map<number, SourceBox>();

  constructor(readonly tensor: SelectedTensor) {
    this.#finder = tensor.finder ?? new ListedBoxes(tensor);
  }

  /** The boxes that together hold `region`. @throws OptError MISSING if none does */
  boxesOf(region: Box): SourceBox[] {
    return this.#finder.sourcesOf(region).map((index) => {
      const box = this.#boxes.get(index) ?? this.#finder.box(index);
      this.#boxes.set(index, box);
      return box;
    });
  }
}

class ListedBoxes implements BoxFinder {
  readonly #boxes: readonly SourceBox[];
  readonly #plan: SourcePlan;

  constructor(tensor: SelectedTensor) {
    this.#boxes = tensor.boxes;
    this.#plan = new SourcePlan(tensor, this.#boxes);
  }

  sourcesOf(region: Box): number[] {
    return this.#plan.sourcesOf(region);
  }

  box(index: number): SourceBox {
    return this.#boxes[index]!;
  }
}

export interface RequestOptions {
  /** How much of the boxes that hold it is read. `chunk`: other requests read the rest; `whole`: this one does, to verify them. */
  readonly extent?: "region" | "chunk" | "whole";
  readonly done?: () => void;
  /** Takes what reading a box threw; without it, the whole plan ends. */
  readonly failed?: (error: unknown, box: SourceBox) => void;
}

/** A region of a tensor, and the memory that it fills, row-major; without memory it is read to be verified only. */
export class ReadRequest {
  pending = 0;

  constructor(
    readonly source: Pick<PlannedSource, "tensor" | "boxesOf">,
    readonly region: Box,
    readonly target: Uint8Array | undefined,
    readonly options: RequestOptions = {},
  ) {}
}

/** What a box gives to one request. Made by a constructor: V8 keeps literals that live for a while, and collects them late. */
class Part {
  constructor(
    readonly request: ReadRequest,
    readonly box: SourceBox,
    readonly begin: number,
    readonly length: number,
    readonly position: number,
    /** Where in the target the bytes go, if they go there in one piece. */
    readonly to: number | undefined,
    /** Else which elements of them go to the target. */
    readonly wanted: Box | undefined,
    readonly isSummed: boolean,
  ) {
    request.pending++;
  }

  get into(): Uint8Array | undefined {
    return this.to === undefined ? undefined : this.request.target!.subarray(this.to, this.to + this.length);
  }

  take(bytes: Uint8Array, isInPlace: boolean, crc32: number | undefined): void {
    const { request, box, begin, isSummed, to } = this;
    const { name, verification } = request.source.tensor;
    verification?.accept(name, box, begin, bytes, isSummed, crc32);
    if (to === undefined) this.#scatter(bytes);
    else if (!isInPlace) copyBytes(bytes, 0, request.target!, to, bytes.length);
    if (--request.pending === 0) request.options.done?.();
  }

  #scatter(bytes: Uint8Array): void {
    const { request, box, begin, wanted } = this;
    const { region, source, target } = request;
    const { conversion } = source.tensor;
    if (!wanted || !(target || conversion)) return;
    if (!conversion) {
      for (const { from, to, length } of runsOf(box, region, wanted, storedWidth(source.tensor)))
        copyBytes(bytes, from - begin, target!, to, length);
      return;
    }
    const { from: stored, to: held } = conversion.widths;
    for (const { from, to, length } of runsOf(box, region, wanted, 1)) {
      const run = bytes.subarray(from * stored - begin, (from + length) * stored - begin);
      // Also what goes nowhere is converted: a number may not fit.
      conversion.convert(run, target?.subarray(to * held, (to + length) * held) ?? new Uint8Array(length * held));
    }
  }
}

/** Bytes of a file that are read at once: parts that lie near each other. */
export class FileRead {
  readonly length: number;
  readonly position: number;

  constructor(
    readonly file: StoredFile,
    readonly parts: readonly Part[],
    /** Follows this one, and never runs beside it. */
    readonly next?: FileRead,
  ) {
    this.position = parts[0]!.position;
    let end = this.position;
    for (const { position, length } of parts) end = Math.max(end, position + length);
    this.length = end - this.position;
  }

  /** Where all of the bytes belong; undefined where they go through a lane's own memory. */
  get into(): Uint8Array | undefined {
    return this.parts.length === 1 ? this.parts[0]!.into : undefined;
  }

  /** Whoever reads is asked for the checksum of all bytes. */
  get isSummed(): boolean {
    const [{ box, isSummed, request }] = this.parts as readonly [Part];
    const isVerified = request.source.tensor.verification !== undefined;
    const hasSum = box.isSummedLater === true || box.crc32 !== undefined;
    return this.parts.length === 1 && isSummed && isVerified && hasSum;
  }

  /** What to read in its place, so that it shows which part it was; throws the error where nobody wants to know. */
  failed(error: unknown): FileRead[] {
    if (this.parts.some(({ request }) => !request.options.failed)) throw error;
    if (this.parts.length > 1) return this.parts.map((part) => new FileRead(this.file, [part]));
    const [{ request, box }] = this.parts as readonly [Part];
    request.options.failed!(error, box);
    return [];
  }

  /** Takes what was read; `crc32` is of all of it, if whoever read it took it. */
  take(bytes: Uint8Array, crc32: number | undefined): void {
    const { parts, position } = this;
    if (parts.length === 1) parts[0]!.take(bytes, parts[0]!.to !== undefined, crc32);
    else
      for (const part of parts) {
        const begin = part.position - position;
        part.take(bytes.subarray(begin, begin + part.length), false, undefined);
      }
  }
}

/**
 * The reads that fill all requests, by file and place; near ones are one read of at most `room` bytes.
 *
 * @throws OptError MISSING before any read
 */
export function* planReads(requests: Iterable<ReadRequest>, room: number): Generator<FileRead> {
  const files = new Map<StoredFile, Part[]>();
  const chains: FileRead[] = [];
  for (const request of requests) {
    for (const box of request.source.boxesOf(request.region)) {
      const { stored } = box;
      if (stored) {
        const parts = files.get(stored.file) ?? Array.of<Part>();
        for (const part of partsOf(request, box, stored.begin, room)) parts.push(part);
        files.set(stored.file, parts);
        continue;
      }
      // What is no plain bytes of a file may have to be unpacked, from front to back.
      const parts = [...partsOf(request, box, 0, room)];
      let chain: FileRead | undefined;
      for (const part of parts.reverse()) chain = new FileRead(box, [part], chain);
      if (chain) chains.push(chain);
    }
    if (request.pending === 0) request.options.done?.();
  }
  yield* chains;
  for (const [file, parts] of files) yield* spansOf(file, parts, room);
}

/** What a request takes from a box, in pieces: straight to the target, or no larger than `room`. */
function* partsOf(request: ReadRequest, box: SourceBox, base: number, room: number): Generator<Part> {
  const { region, target, source } = request;
  const { extent = "region" } = request.options;
  const { tensor } = source;
  const width = storedWidth(tensor);
  const shared = intersect(box, region)!;
  const isSummed = extent !== "region" || sameBox(shared, box);
  const part = (begin: number, length: number, to: number | undefined, wanted: Box | undefined) =>
    new Part(request, box, begin, length, base + begin, to, wanted, isSummed);
  if (extent === "whole") {
    let begin = 0;
    for (const { offset, size } of chunksOf(box.size, Math.floor(room / width))) {
      const chunk = { offset: offset.map((at, d) => at + box.offset[d]!), size };
      const length = elementsIn(chunk) * width;
      yield part(begin, length, undefined, intersect(chunk, shared));
      begin += length;
    }
    return;
  }
  if (target && !tensor.conversion) {
    const only = onlyRun(box, region, shared, width);
    const length = only?.length ?? runLength(box, region, shared, width);
    if (only || length >= DIRECT || length > room) {
      const runs: Iterable<Run> = only ? [only] : runsOf(box, region, shared, width);
      for (const { from, to } of runs) {
        for (let at = 0; at < length; at += PIECE)
          yield part(from + at, Math.min(PIECE, length - at), to + at, undefined);
      }
      return;
    }
  }
  for (const piece of nearPieces(box, shared, width, room, GAP)) {
    const begin = placeIn(box, piece.offset, width);
    const last = piece.offset.map((at, d) => at + piece.size[d]! - 1);
    yield part(begin, placeIn(box, last, width) + width - begin, undefined, piece);
  }
}

/** Parts in the order of their bytes, those that are read at once together. */
function* spansOf(file: StoredFile, parts: Part[], room: number): Generator<FileRead> {
  parts.sort((a, b) => a.position - b.position);
  let span = Array.of<Part>();
  let end = 0;
  for (const part of parts) {
    const [first] = span;
    const joins = first && part.position - end <= GAP && part.position + part.length - first.position <= room;
    // What is long enough goes straight to its place, and whoever reads takes its checksum.
    const isLong = part.length >= DIRECT;
    if (first && (!joins || isLong)) {
      yield new FileRead(file, span);
      span = Array.of<Part>();
    }
    if (isLong) {
      yield new FileRead(file, Array.of(part));
      continue;
    }
    end = span.length === 0 ? part.position + part.length : Math.max(end, part.position + part.length);
    span.push(part);
  }
  if (span.length > 0) yield new FileRead(file, span);
}
