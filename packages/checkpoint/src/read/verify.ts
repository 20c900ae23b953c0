/** Verifying: every byte of a checkpoint is read and compared with its checksum; what is wrong is named, and nothing is thrown for it. */

import { checkOptions, OptError } from "@opt/core";
import { crc32, crcText } from "../format/crc32";
import { bytesPerElement } from "../format/dtype";
import { MANIFEST_FILE, type Manifest, type ManifestTensor } from "../format/manifest";
import { type FileRecord, sha256Of } from "../format/shard";
import { filling, openRandomAccess, type ReadLimits, redescribed } from "../format/source";
import { findStep } from "../format/steps";
import { Sums, Verification } from "../format/verification";
import { lookAt } from "../formats/registry";
import { elementsIn, wholeOf } from "../layout/box";
import { SourcePlan } from "../plan/plan";
import { fileSystemOf } from "../platform/local";
import { FilePool } from "../stores/file-pool";
import { checkedPath, diskError, type FileSystem, type StoredFile } from "../stores/file-system";
import { join } from "../stores/path";
import { type ProgressCallback, reporter } from "../stores/progress";
import { checkpointImporter, readManifest } from "./native";
import { hasNewManifest, OPEN_OPTIONS, type OpenOptions, openSource } from "./open";
import { PlannedSource, type Read, ReadRequest } from "./read-plan";
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

/** How often a step may be replaced under the reader's hands. */
const TRIES = 5;

/** Reads all of a step (or of any known format). Throws only where there is nothing to verify: MISSING, UNSUPPORTED. */
export async function verifyCheckpoint(path: string, options: VerifyOptions = {}): Promise<VerifyResult> {
  checkedPath("verifyCheckpoint", path);
  checkOptions("verifyCheckpoint", options, { ...OPEN_OPTIONS, progress: "function" });
  const fileSystem = fileSystemOf(options.fileSystem);
  const isOurs = options.step !== undefined || checkpointImporter.recognises(await lookAt(path, fileSystem));
  if (!isOurs) return verifyForeign(path, options);
  for (let tries = 1; ; tries++) {
    const folder = await findStep(fileSystem, path, options.step);
    const verifier = new StepVerifier(fileSystem, folder, options);
    const result = await verifier.verify();
    if (result.ok || tries >= TRIES || !(await verifier.isReplaced())) return result;
  }
}

class StepVerifier {
  readonly #fileSystem: FileSystem;
  readonly #folder: string;
  readonly #progress: ProgressCallback | undefined;
  readonly #problems: Problem[] = [];
  readonly #limits: ReadLimits;
  #attempt: string | undefined;
  #bytes = 0;

  constructor(fileSystem: FileSystem, folder: string, { progress, ...limits }: VerifyOptions) {
    this.#fileSystem = fileSystem;
    this.#folder = folder;
    this.#progress = progress;
    this.#limits = limits;
  }

  /** Whether another save has taken this one's place meanwhile: what was found then says nothing. */
  isReplaced(): Promise<boolean> {
    return hasNewManifest(this.#fileSystem, this.#folder, this.#attempt);
  }

  async verify(): Promise<VerifyResult> {
    let manifest: Manifest;
    try {
      manifest = await readManifest(this.#fileSystem, this.#folder, this.#limits);
      this.#attempt = manifest.attempt;
    } catch (error) {
      this.#note("manifest", MANIFEST_FILE, 0, await this.#lengthOf(MANIFEST_FILE), error);
      return this.#result(0);
    }
    for (const tensor of manifest.tensors) this.#checkCoverage(tensor);
    const handles = new FilePool(this.#fileSystem, "read");
    try {
      await this.#verifyFiles(manifest, handles);
    } finally {
      await handles.close();
    }
    return this.#result(manifest.tensors.length);
  }

  #result(tensors: number): VerifyResult {
    const problems = this.#problems.sort((a, b) => (a.file === b.file ? a.begin - b.begin : a.file < b.file ? -1 : 1));
    return { ok: problems.length === 0, path: this.#folder, problems, tensors, bytes: this.#bytes, unverified: [] };
  }

  #note(subject: string, file: string, begin: number, end: number, problem: unknown): void {
    const text = problem instanceof Error ? problem.message : String(problem);
    this.#problems.push({ subject, file, begin, end, problem: text });
  }

  async #lengthOf(name: string): Promise<number> {
    try {
      const file = await openRandomAccess(this.#fileSystem, join(this.#folder, name));
      await file.close();
      return file.byteLength;
    } catch {
      return 0;
    }
  }

  #checkCoverage(tensor: ManifestTensor): void {
    try {
      new SourcePlan(tensor, tensor.boxes).sourcesOf(wholeOf(tensor.shape));
    } catch (error) {
      this.#note(tensor.name, MANIFEST_FILE, 0, 0, error);
    }
  }

  async #verifyFiles(manifest: Manifest, handles: FilePool): Promise<void> {
    const report = reporter(
      this.#progress,
      manifest.files.reduce((sum, file) => sum + file.byteLength, 0),
    );
    const read = (bytes: number) => {
      this.#bytes += bytes;
      report(bytes);
    };
    const files: VerifiedFile[] = [];
    for (const [index, segments] of segmentsOf(manifest).entries()) {
      const record = manifest.files[index]!;
      const path = join(this.#folder, record.name);
      try {
        const length = await handles.use(path, (file) => file.size());
        if (length !== record.byteLength) {
          const [begin, end] = [length, record.byteLength].sort((a, b) => a - b) as [number, number];
          this.#note("file", record.name, begin, end, `must have ${record.byteLength} bytes, has ${length}.`);
        }
        const file = filling(path, (...range) => handles.use(path, (open) => open.read(...range)));
        files.push({ record, file, segments, sums: new Sums() });
      } catch (error) {
        const problem = diskError(error, path, "opening");
        for (const { subject, begin, end } of segments) this.#note(subject, record.name, begin, end, problem);
      }
    }
    await new ReadPool().run(function* (room) {
      for (const file of files) for (const segment of file.segments) yield* readsOf(file, segment, room, read);
    });
    for (const file of files) await this.#judge(file, handles);
  }

  async #judge({ record, segments, sums }: VerifiedFile, handles: FilePool): Promise<void> {
    const { name, byteLength } = record;
    for (const { subject, begin, end, crc32, sums, error } of segments) {
      const crc = sums.of(begin, end);
      if (crc === undefined) this.#note(subject, name, begin, end, error);
      else if (crc32 !== undefined && crc32 !== crc) {
        this.#note(subject, name, begin, end, `checksum must be ${crcText(crc32)}, got ${crcText(crc)}.`);
      }
    }
    if (this.#problems.some(({ file }) => file === name)) return;
    const path = join(this.#folder, name);
    const isWhole =
      sums.of(0, byteLength) === record.crc32 &&
      (record.sha256 === undefined ||
        (await handles.use(path, (file) => sha256Of(file, byteLength))) === record.sha256);
    if (!isWhole) this.#note("file", name, 0, byteLength, "the checksum of the whole file does not match.");
  }
}

interface VerifiedFile {
  readonly record: FileRecord;
  readonly file: StoredFile;
  readonly segments: readonly Segment[];
  /** Of the file as a whole. */
  readonly sums: Sums;
}

/** Bytes of a file that have a checksum, or that nothing tells of. */
class Segment {
  readonly sums = new Sums();
  error: unknown;

  constructor(
    readonly subject: string,
    readonly begin: number,
    readonly end: number,
    readonly crc32?: number,
  ) {}
}

/** Reads all of a segment; `done` is told of the bytes. */
function* readsOf(
  { file, sums }: VerifiedFile,
  segment: Segment,
  room: number,
  done: (bytes: number) => void,
): Generator<Read> {
  for (let position = segment.begin; position < segment.end; position += room) {
    const end = Math.min(position + room, segment.end);
    yield {
      file,
      position,
      length: end - position,
      isSummed: true,
      take(bytes, own) {
        const crc = own ?? crc32(bytes);
        segment.sums.add(position, end, crc);
        sums.add(position, end, crc);
        done(bytes.length);
      },
      fail(error) {
        segment.error ??= error;
      },
    };
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
async function verifyForeign(path: string, options: VerifyOptions): Promise<VerifyResult> {
  const problems: Problem[] = [];
  const verification = new Verification();
  const note = (subject: string, file: string, error: unknown, length: number) => {
    if (!(error instanceof OptError) || error.code === "INTERNAL") throw error;
    problems.push({ subject, file, begin: 0, end: length, problem: error.message });
  };
  let tensors = 0;
  try {
    const source = await openSource(path, options);
    tensors = source.tensors.size;
    const total = [...source.tensors.values()].reduce(
      (sum, { dtype, shape }) => sum + elementsIn(wholeOf(shape)) * bytesPerElement(dtype),
      0,
    );
    const report = reporter(options.progress, total);
    const pool = new ReadPool();
    try {
      for (const tensor of source.tensors.values()) {
        const whole = wholeOf(tensor.shape);
        try {
          const checked = new PlannedSource(redescribed(tensor, { verification }));
          await pool.fill([new ReadRequest(checked, whole, undefined)]);
          report(elementsIn(whole) * bytesPerElement(tensor.dtype));
        } catch (error) {
          note(tensor.name, tensor.boxes[0]?.file ?? path, error, tensor.boxes[0]?.byteLength ?? 0);
        }
      }
    } finally {
      await source.close();
    }
  } catch (error) {
    if (error instanceof OptError && (error.code === "MISSING" || error.code === "UNSUPPORTED")) throw error;
    note("header", path, error, 0);
  }
  const unverified = verification.unverified();
  return { ok: problems.length === 0, path, problems, tensors, bytes: verification.bytesRead, unverified };
}
