/** Verifying: every byte of a checkpoint is read and compared with its checksum; what is wrong is named, and nothing is thrown for it. */

import { checkOptions, OptError } from "@opt/core";
import { platform } from "#platform";
import { checkedTensor, extended, Verification } from "../format/checked";
import { crcText, joinCrc32 } from "../format/crc32";
import { bytesPerElement } from "../format/dtype";
import { MANIFEST_FILE, type Manifest, type ManifestTensor } from "../format/manifest";
import type { FileRecord } from "../format/shard";
import { openRandomAccess, type RandomAccess, type ReadLimits } from "../format/source";
import { findStep } from "../format/steps";
import { lookAt } from "../formats/registry";
import { elementsIn, wholeOf } from "../layout/box";
import { SourcePlan } from "../plan/plan";
import { fileSystemOf } from "../platform/local";
import { type Checksum, checkedPath, type FileSystem } from "../stores/file-system";
import { allOf } from "../stores/lanes";
import { join } from "../stores/path";
import { type ProgressCallback, reporter } from "../stores/progress";
import { Scratch } from "../stores/scratch";
import { checkpointImporter, readManifest } from "./native";
import { hasNewManifest, OPEN_OPTIONS, type OpenOptions, openSource } from "./open";
import { TensorReader } from "./reader";
import { chunksOf } from "./stream";

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

const PIECE = 4 << 20;
const LANES = 4;
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
    const report = reporter(
      this.#progress,
      manifest.files.reduce((sum, file) => sum + file.byteLength, 0),
    );
    const queue = [...manifest.files.entries()];
    const lane = async () => {
      const scratch = new Scratch(PIECE);
      for (let next = queue.shift(); next; next = queue.shift())
        await this.#verifyFile(next[1], segmentsOf(manifest, next[0]), scratch, report);
    };
    await allOf(Array.from({ length: LANES }, lane));
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

  async #verifyFile(
    record: FileRecord,
    segments: readonly Segment[],
    scratch: Scratch,
    report: (bytes: number) => void,
  ): Promise<void> {
    let file: RandomAccess;
    try {
      file = await openRandomAccess(this.#fileSystem, join(this.#folder, record.name));
    } catch (error) {
      for (const { subject, begin, end } of segments) this.#note(subject, record.name, begin, end, error);
      return;
    }
    try {
      const before = this.#problems.length;
      if (file.byteLength !== record.byteLength) {
        const [begin, end] = [
          Math.min(file.byteLength, record.byteLength),
          Math.max(file.byteLength, record.byteLength),
        ];
        this.#note("file", record.name, begin, end, `must have ${record.byteLength} bytes, has ${file.byteLength}.`);
      }
      const hash = record.sha256 === undefined ? undefined : await platform.sha256();
      let whole = 0;
      for (const segment of segments) {
        const crc = await this.#checksum(file, segment, scratch, hash, report);
        if (crc === undefined) continue;
        whole = joinCrc32(whole, crc, segment.end - segment.begin);
        if (segment.crc32 === undefined || segment.crc32 === crc) continue;
        const problem = `checksum must be ${crcText(segment.crc32)}, got ${crcText(crc)}.`;
        this.#note(segment.subject, record.name, segment.begin, segment.end, problem);
      }
      if (this.#problems.length > before) return;
      const isWhole = whole === record.crc32 && (hash === undefined || hash.digest() === record.sha256);
      if (!isWhole)
        this.#note("file", record.name, 0, record.byteLength, "the checksum of the whole file does not match.");
    } finally {
      await file.close();
    }
  }

  async #checksum(
    file: RandomAccess,
    { subject, begin, end }: Segment,
    scratch: Scratch,
    hash: { update(data: Uint8Array): unknown } | undefined,
    report: (bytes: number) => void,
  ): Promise<number | undefined> {
    let crc = 0;
    try {
      for (let position = begin; position < end; position += PIECE) {
        const piece = scratch.take(Math.min(PIECE, end - position));
        const sum: Checksum = {};
        await file.read(piece, position, sum);
        crc = extended(crc, piece, sum.crc32);
        hash?.update(piece);
        this.#bytes += piece.length;
        report(piece.length);
      }
      return crc;
    } catch (error) {
      this.#note(subject, file.path.slice(this.#folder.length + 1), begin, end, error);
      return undefined;
    }
  }
}

interface Segment {
  readonly subject: string;
  readonly begin: number;
  readonly end: number;
  readonly crc32?: number;
}

/** A file from end to end: its header, its boxes, and what lies between (a replica that another file's stands for). */
function segmentsOf(manifest: Manifest, file: number): Segment[] {
  const { headerLength, headerCrc32, byteLength } = manifest.files[file]!;
  const segments: Segment[] = [{ subject: "header", begin: 0, end: headerLength, crc32: headerCrc32 }];
  for (const { name, boxes } of manifest.tensors) {
    for (const box of boxes) {
      if (box.file === file)
        segments.push({ subject: name, begin: box.byteOffset, end: box.byteOffset + box.byteLength, crc32: box.crc32 });
    }
  }
  segments.sort((a, b) => a.begin - b.begin || a.end - b.end);
  const complete: Segment[] = [];
  let position = 0;
  const gap = (end: number) => {
    if (end > position) complete.push({ subject: "file", begin: position, end });
  };
  for (const segment of segments) {
    gap(segment.begin);
    complete.push(segment);
    position = segment.end;
  }
  gap(byteLength);
  return complete;
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
    const [scratch, buffer] = [new Scratch(PIECE), new Scratch(PIECE)];
    try {
      for (const tensor of source.tensors.values()) {
        const width = bytesPerElement(tensor.dtype);
        try {
          const reader = new TensorReader(checkedTensor(tensor, verification), scratch);
          for (const region of chunksOf(tensor.shape, PIECE / width)) {
            const chunk = buffer.take(elementsIn(region) * width);
            await reader.read(region, chunk);
            report(chunk.length);
          }
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
