/** Verifying: every byte of a checkpoint is read and compared with its checksum; what is wrong is named, and nothing is thrown for it. */

import { checkOptions, OptError } from "@opt/core";
import { crc32, crcText, joinCrc32 } from "../format/crc32";
import { bytesOf } from "../format/dtype";
import { LocatedTensor } from "../format/file-index";
import { MANIFEST_FILE, type Manifest } from "../format/manifest";
import { type FileRecord, sha256Of } from "../format/shard";
import {
  pooled,
  readWhole,
  redescribed,
  type SourceBox,
  StoredBox,
  type TensorSource,
  type Verifier,
} from "../format/source";
import { Sums, Verification } from "../format/verification";
import { wholeOf } from "../layout/box";
import { SourcePlan } from "../plan/plan";
import { fileSystemOf } from "../platform/local";
import { FilePool } from "../stores/file-pool";
import { checkedPath, diskError, type StoredFile } from "../stores/file-system";
import { basename, dirname, join } from "../stores/path";
import { type ProgressCallback, reporter } from "../stores/progress";
import type { NativeSource } from "./native";
import { isNative, OPEN_OPTIONS, type OpenOptions, useSource } from "./open";
import { PlannedSource, planReads, ReadRequest } from "./read-plan";
import { ReadPool } from "./read-pool";

export interface VerifyOptions extends OpenOptions {
  readonly progress?: ProgressCallback;
}

export interface Problem {
  /** The tensor, or "header", "manifest" or "file". */
  readonly subject: string;
  readonly file: string;
  /** The bytes of the file that are meant: [begin, end). */
  readonly begin: number;
  readonly end: number;
  readonly problem: string;
}

export interface VerifyResult {
  readonly ok: boolean;
  readonly path: string;
  readonly problems: readonly Problem[];
  readonly tensors: number;
  /** Bytes read. */
  readonly bytes: number;
  /** Tensors of formats that keep no checksums: only their structure was checked. */
  readonly unverified: readonly string[];
}

/** See operations.ts. */
export async function verifyCheckpoint(path: string, options: VerifyOptions = {}): Promise<VerifyResult> {
  checkedPath("verifyCheckpoint", path);
  checkOptions("verifyCheckpoint", options, { ...OPEN_OPTIONS, progress: "function" });
  const verify = (source: TensorSource, found: VerifyOptions, at: string) =>
    isNative(source) ? verifyStep(source, found) : verifyForeign(source, at, found);
  try {
    // What was found while another save took this one's place says nothing.
    return await useSource(path, options, verify, ({ ok }) => ok);
  } catch (error) {
    if (!(error instanceof OptError) || ["BAD_ARGUMENT", "MISSING", "UNSUPPORTED", "INTERNAL"].includes(error.code))
      throw error;
    return unopened(path, options, error);
  }
}

/** Of a checkpoint whose manifest or header cannot be read. */
async function unopened(path: string, options: VerifyOptions, error: OptError): Promise<VerifyResult> {
  const isOurs = basename(error.where) === MANIFEST_FILE;
  const found = new Findings(isOurs ? dirname(error.where) : path);
  const manifest = isOurs && readWhole(fileSystemOf(options.fileSystem), error.where, Number.POSITIVE_INFINITY);
  const end = manifest ? await manifest.then(({ length }) => length).catch(() => 0) : 0;
  found.note(isOurs ? "manifest" : "header", isOurs ? MANIFEST_FILE : path, 0, end, error);
  return found.result(0);
}

class Findings {
  readonly problems: Problem[] = [];
  /** Bytes read. */
  bytes = 0;

  constructor(readonly path: string) {}

  note(subject: string, file: string, begin: number, end: number, problem: unknown): void {
    const text = problem instanceof Error ? problem.message : String(problem);
    this.problems.push({ subject, file, begin, end, problem: text });
  }

  result(tensors: number, unverified: readonly string[] = []): VerifyResult {
    const { problems, path, bytes } = this;
    problems.sort((a, b) => (a.file === b.file ? a.begin - b.begin : a.file < b.file ? -1 : 1));
    return { ok: problems.length === 0, path, problems, tensors, bytes, unverified };
  }
}

async function verifyStep({ path, manifest }: NativeSource, options: VerifyOptions): Promise<VerifyResult> {
  const found = new Findings(path);
  for (const tensor of manifest.tensors) {
    const { name, shape } = tensor;
    try {
      const plan = tensor instanceof LocatedTensor ? tensor : new SourcePlan(tensor, tensor.boxes);
      plan.sourcesOf(wholeOf(shape));
    } catch (error) {
      found.note(name, MANIFEST_FILE, 0, 0, error);
    }
  }
  const total = manifest.files.reduce((sum, file) => sum + file.byteLength, 0);
  const handles = new FilePool(fileSystemOf(options.fileSystem), "read");
  try {
    await verifyFiles(manifest, handles, found, reporter(options.progress, total));
  } finally {
    await handles.close();
  }
  return found.result(manifest.tensors.length);
}

/** Reads each file as a tensor of bytes, whose boxes are its header, its tensors' boxes, and what lies between. */
async function verifyFiles(manifest: Manifest, handles: FilePool, found: Findings, report: (bytes: number) => void) {
  const verification: Verifier = {
    accept(_tensor, segment, begin, bytes, _isSummed, own) {
      (segment as Segment).sums.add(begin, begin + bytes.length, own ?? crc32(bytes));
      found.bytes += bytes.length;
      report(bytes.length);
    },
  };
  const failed = (error: unknown, segment: SourceBox) => {
    (segment as Segment).error ??= error;
  };
  await verifyChecksums(manifest, handles, found);
  const marksOf = manifest.index ? locatedMarks(manifest, handles, found) : listedMarks(manifest);
  let files: VerifiedFile[] = [];
  const readAll = async () => {
    await readSegments(files, verification, failed);
    for (const file of files) await judgeFile(file, handles, found);
    files = [];
  };
  let held = 0;
  for (const [index, record] of manifest.files.entries()) {
    const path = join(found.path, record.name);
    const marks = complete(await marksOf(index), record);
    const file = pooled(handles, path);
    const segments = marks.map(({ subject, begin, end, crc32 }) => new Segment(subject, begin, end, crc32, file));
    try {
      const length = await handles.use(path, (file) => file.size());
      if (length !== record.byteLength) {
        const [begin, end] = [length, record.byteLength].sort((a, b) => a - b) as [number, number];
        found.note("file", record.name, begin, end, `must have ${record.byteLength} bytes, has ${length}.`);
      }
      files.push({ record, path, segments });
      held += segments.length;
      if (held > MOST_SEGMENTS) {
        await readAll();
        held = 0;
      }
    } catch (error) {
      const problem = diskError(error, path, "opening");
      for (const { subject, byteOffset, end } of segments) found.note(subject, record.name, byteOffset, end, problem);
    }
  }
  await readAll();
}

/** Segments of files that are read together: of tens of millions the memory holds few. */
const MOST_SEGMENTS = 1 << 18;

interface VerifiedFile {
  readonly record: FileRecord;
  readonly path: string;
  readonly segments: readonly Segment[];
}

async function readSegments(
  files: readonly VerifiedFile[],
  verification: Verifier,
  failed: (error: unknown, segment: SourceBox) => void,
): Promise<void> {
  await new ReadPool().run(function* (room) {
    for (const { record, segments } of files) {
      const [header, ...others] = segments;
      for (const boxes of [[header!], others]) {
        const shape = [record.byteLength];
        const tensor = { name: record.name, dtype: "U8", shape, boxes, verification } as const;
        yield* planReads(
          [new ReadRequest({ tensor, boxesOf: () => boxes }, wholeOf(shape), undefined, { failed })],
          room,
        );
      }
    }
  });
}

async function judgeFile({ record, path, segments }: VerifiedFile, handles: FilePool, found: Findings): Promise<void> {
  const { name, byteLength, crc32, sha256 } = record;
  const whole = judge(segments, name, found);
  if (found.problems.some(({ file }) => file === name)) return;
  const isWhole =
    whole === crc32 &&
    (sha256 === undefined || (await handles.use(path, (file) => sha256Of(file, byteLength))) === sha256);
  if (!isWhole) found.note("file", name, 0, byteLength, "the checksum of the whole file does not match.");
}

/** Compares what was read of a file with what the manifest says; returns the checksum of all of it. */
function judge(segments: readonly Segment[], name: string, found: Findings): number {
  let whole = 0;
  for (const { subject, byteOffset, end, byteLength, crc32, sums, error } of segments) {
    const sum = sums.of(0, byteLength);
    if (sum === undefined) found.note(subject, name, byteOffset, end, error);
    else if (crc32 !== undefined && crc32 !== sum)
      found.note(subject, name, byteOffset, end, `checksum must be ${crcText(crc32)}, got ${crcText(sum)}.`);
    else whole = joinCrc32(whole, sum, byteLength);
  }
  return whole;
}

/** Bytes of a file that have a checksum, or that nothing tells of. */
class Segment extends StoredBox {
  readonly sums = new Sums();
  error: unknown;

  constructor(
    readonly subject: string,
    begin: number,
    readonly end: number,
    crc32: number | undefined,
    file: StoredFile,
  ) {
    super([begin], [end - begin], subject, begin, end - begin, crc32, file);
  }
}

interface Mark {
  readonly subject: string;
  readonly begin: number;
  readonly end: number;
  readonly crc32?: number;
}

/** By file, what its header and the boxes that a manifest lists are. */
function listedMarks({ files, tensors }: Manifest): (file: number) => Mark[] {
  const known = files.map((record) => [headerOf(record)]);
  for (const { name, boxes } of tensors) {
    for (const { file, byteOffset: begin, byteLength, crc32 } of boxes)
      known[file]!.push({ subject: name, begin, end: begin + byteLength, crc32 });
  }
  return (file) => known[file]!;
}

/** The file of all checksums ends where the manifest says; its contents are verified with the files that they are of. */
async function verifyChecksums({ index, checksums, files }: Manifest, handles: FilePool, found: Findings) {
  if (!index || files.length === 0) return;
  const { end } = index.rangeOf(files.length - 1);
  const length = await handles.use(join(found.path, checksums!), (file) => file.size()).catch(() => end);
  if (length > end) found.note("checksums", checksums!, end, length, `must have ${end} bytes, has ${length}.`);
}

/** The same where the checksums are in a file of their own. */
function locatedMarks(
  { files, index, checksums }: Manifest,
  handles: FilePool,
  found: Findings,
): (file: number) => Promise<Mark[]> {
  const where = join(found.path, checksums!);
  const { read } = pooled(handles, where);
  return async (file) => {
    const header = headerOf(files[file]!);
    await index!.readChecksums(file, where, read);
    try {
      const sums = index!.checksumsOf(file);
      found.bytes += sums.byteLength;
      const boxes = index!.boxesIn(file);
      return [
        header,
        ...boxes.map(({ tensor: { name: subject }, box: { byteOffset: begin, byteLength } }, i) => {
          return { subject, begin, end: begin + byteLength, crc32: sums[i]! };
        }),
      ];
    } catch (error) {
      const { begin, end } = index!.rangeOf(file);
      found.note("checksums", checksums!, begin, end, error);
      return [header];
    }
  };
}

function headerOf({ headerLength: end, headerCrc32: crc32 }: FileRecord): Mark {
  return { subject: "header", begin: 0, end, crc32 };
}

/** The marks of a file in order, and what lies between them. */
function complete(marks: readonly Mark[], { byteLength }: FileRecord): Mark[] {
  const all: Mark[] = [];
  let position = 0;
  const gap = (end: number) => {
    if (end > position) all.push({ subject: "file", begin: position, end });
  };
  for (const mark of marks.filter(({ begin, end }) => end > begin).sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    gap(mark.begin);
    all.push(mark);
    position = mark.end;
  }
  gap(byteLength);
  return all;
}

/** Other formats are read whole: their readers throw at what is wrong. */
async function verifyForeign(source: TensorSource, path: string, options: VerifyOptions): Promise<VerifyResult> {
  const found = new Findings(path);
  const verification = new Verification();
  const all = [...source.tensors.values()];
  const report = reporter(
    options.progress,
    all.reduce((sum, tensor) => sum + bytesOf(tensor), 0),
  );
  const pool = new ReadPool();
  for (const tensor of all) {
    const bad = new Set<SourceBox | undefined>();
    const failed = (error: unknown, box?: SourceBox) => {
      if (!(error instanceof OptError) || error.code === "INTERNAL") throw error;
      if (bad.has(box)) return;
      bad.add(box);
      const { begin, byteLength } = box?.packed ?? { begin: box?.byteOffset ?? 0, byteLength: box?.byteLength ?? 0 };
      found.note(tensor.name, box?.file ?? path, begin, begin + byteLength, error);
    };
    try {
      const checked = new PlannedSource(redescribed(tensor, { verification }));
      await pool.fill([new ReadRequest(checked, wholeOf(tensor.shape), undefined, { failed })]);
      report(bytesOf(tensor));
    } catch (error) {
      failed(error, tensor.boxes.length === 1 ? tensor.boxes[0] : undefined);
    }
  }
  found.bytes = verification.bytesRead;
  return found.result(all.length, verification.unverified());
}
