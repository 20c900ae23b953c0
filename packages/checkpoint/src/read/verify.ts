/** Verifying: every byte of a checkpoint is read and compared with its checksum; what is wrong is named, and nothing is thrown for it. */

import { checkOptions, OptError } from "@opt/core";
import { crc32, crcText, joinCrc32 } from "../format/crc32";
import { bytesOf } from "../format/dtype";
import { MANIFEST_FILE, type Manifest } from "../format/manifest";
import { type FileRecord, sha256Of } from "../format/shard";
import {
  openRandomAccess,
  pooled,
  redescribed,
  type SourceBox,
  StoredBox,
  type TensorSource,
  type Verifier,
} from "../format/source";
import { Sums, Verification } from "../format/verification";
import { wholeOf } from "../layout/box";
import { inBatches } from "../plan/chunks";
import { SourcePlan } from "../plan/plan";
import { fileSystemOf } from "../platform/local";
import { FilePool } from "../stores/file-pool";
import { checkedPath, diskError, type FileSystem, type StoredFile } from "../stores/file-system";
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
  const fileSystem = fileSystemOf(options.fileSystem);
  const verify = (source: TensorSource) =>
    isNative(source) ? verifyStep(source, options) : verifyForeign(source, path, options);
  try {
    // What was found while another save took this one's place says nothing.
    return await useSource(path, options, verify, ({ ok }) => ok);
  } catch (error) {
    if (!(error instanceof OptError) || ["MISSING", "UNSUPPORTED", "INTERNAL"].includes(error.code)) throw error;
    return unopened(path, fileSystem, error);
  }
}

/** Of a checkpoint whose manifest or header cannot be read. */
async function unopened(path: string, fileSystem: FileSystem, error: OptError): Promise<VerifyResult> {
  const isOurs = basename(error.where) === MANIFEST_FILE;
  const found = new Findings(isOurs ? dirname(error.where) : path);
  if (!isOurs) found.note("header", path, 0, 0, error);
  else found.note("manifest", MANIFEST_FILE, 0, await lengthOf(fileSystem, error.where), error);
  return found.result(0);
}

/** What is found on the way. */
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
  for (const { name, shape, boxes } of manifest.tensors) {
    try {
      new SourcePlan({ name, shape }, boxes).sourcesOf(wholeOf(shape));
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

async function lengthOf(fileSystem: FileSystem, path: string): Promise<number> {
  try {
    const file = await openRandomAccess(fileSystem, path);
    await file.close();
    return file.byteLength;
  } catch {
    return 0;
  }
}

async function verifyFiles(
  manifest: Manifest,
  handles: FilePool,
  found: Findings,
  report: (bytes: number) => void,
): Promise<void> {
  const files: VerifiedFile[] = [];
  for (const [index, segments] of segmentsOf(manifest).entries()) {
    const record = manifest.files[index]!;
    const path = join(found.path, record.name);
    try {
      const length = await handles.use(path, (file) => file.size());
      if (length !== record.byteLength) {
        const [begin, end] = [length, record.byteLength].sort((a, b) => a - b) as [number, number];
        found.note("file", record.name, begin, end, `must have ${record.byteLength} bytes, has ${length}.`);
      }
      files.push({ path, record, file: pooled(handles, path), segments });
    } catch (error) {
      const problem = diskError(error, path, "opening");
      for (const { subject, begin, end } of segments) found.note(subject, record.name, begin, end, problem);
    }
  }
  await new ReadPool().run(function* (room) {
    for (const { file, segments } of files) {
      const request = (segment: Segment) =>
        segment.request(file, () => {
          found.bytes += segment.byteLength;
          report(segment.byteLength);
        });
      const [header, ...others] = segments;
      yield* planReads([request(header!)], room);
      for (const batch of inBatches(others, ({ byteLength }) => byteLength)) yield* planReads(batch.map(request), room);
    }
  });
  for (const file of files) await judge(file, handles, found);
}

/** Compares what was read of a file with what the manifest says. */
async function judge({ path, record, segments }: VerifiedFile, handles: FilePool, found: Findings): Promise<void> {
  const { name, byteLength, sha256 } = record;
  let whole = 0;
  for (const { subject, begin, end, expected, crc32, error } of segments) {
    if (crc32 === undefined) found.note(subject, name, begin, end, error);
    else if (expected !== undefined && expected !== crc32)
      found.note(subject, name, begin, end, `checksum must be ${crcText(expected)}, got ${crcText(crc32)}.`);
    else whole = joinCrc32(whole, crc32, end - begin);
  }
  if (found.problems.some(({ file }) => file === name)) return;
  const isWhole =
    whole === record.crc32 &&
    (sha256 === undefined || (await handles.use(path, (file) => sha256Of(file, byteLength))) === sha256);
  if (!isWhole) found.note("file", name, 0, byteLength, "the checksum of the whole file does not match.");
}

interface VerifiedFile {
  readonly path: string;
  readonly record: FileRecord;
  readonly file: StoredFile;
  readonly segments: readonly Segment[];
}

/** Bytes of a file that have a checksum, or that nothing tells of: read as a tensor of bytes. */
class Segment implements Verifier {
  /** Undefined where not all of it could be read. */
  crc32: number | undefined;
  error: unknown;
  readonly byteLength: number;
  #sums: Sums | undefined;

  constructor(
    readonly subject: string,
    readonly begin: number,
    readonly end: number,
    readonly expected?: number,
  ) {
    this.byteLength = end - begin;
    if (this.byteLength === 0) this.crc32 = 0;
  }

  accept(_tensor: string, _box: SourceBox, begin: number, bytes: Uint8Array, _isSummed: boolean, own?: number): void {
    this.crc32 = own ?? crc32(bytes);
    if (bytes.length === this.byteLength) return;
    this.#sums ??= new Sums();
    this.#sums.add(begin, begin + bytes.length, this.crc32);
    this.crc32 = this.#sums.of(0, this.byteLength);
  }

  request(file: StoredFile, done: () => void): ReadRequest {
    const { subject, begin, byteLength, expected } = this;
    const shape = [byteLength];
    const boxes = [new StoredBox([0], shape, subject, begin, byteLength, expected, file)];
    const source = new PlannedSource({ name: subject, dtype: "U8", shape, boxes, verification: this });
    const failed = (error: unknown) => {
      this.error ??= error;
    };
    return new ReadRequest(source, wholeOf(shape), undefined, { done, failed });
  }
}

/** Each file from end to end: its header, its boxes, and what lies between (a replica that another file's stands for). */
function segmentsOf({ files, tensors }: Manifest): Segment[][] {
  const known = files.map(({ headerLength, headerCrc32 }) => [new Segment("header", 0, headerLength, headerCrc32)]);
  for (const { name, boxes } of tensors) {
    for (const { file, byteOffset, byteLength, crc32 } of boxes)
      known[file]!.push(new Segment(name, byteOffset, byteOffset + byteLength, crc32));
  }
  return known.map((segments, file) => {
    segments.sort((a, b) => a.begin - b.begin || a.end - b.end);
    const complete: Segment[] = [];
    let position = 0;
    const gap = (end: number) => {
      if (end > position) complete.push(new Segment("file", position, end));
    };
    for (const segment of segments) {
      gap(segment.begin);
      complete.push(segment);
      position = segment.end;
    }
    gap(files[file]!.byteLength);
    return complete;
  });
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
    try {
      const checked = new PlannedSource(redescribed(tensor, { verification }));
      await pool.fill([new ReadRequest(checked, wholeOf(tensor.shape), undefined)]);
      report(bytesOf(tensor));
    } catch (error) {
      if (!(error instanceof OptError) || error.code === "INTERNAL") throw error;
      const [box] = tensor.boxes;
      found.note(tensor.name, box?.file ?? path, 0, box?.byteLength ?? 0, error);
    }
  }
  found.bytes = verification.bytesRead;
  return found.result(all.length, verification.unverified());
}
