/** Writing one rank's file from boxes in memory. */

import { type FileRecord, type ShardBox, ShardWriter, type WrittenBox } from "../format/shard";
import { FilePool } from "../stores/file-pool";
import { diskError, type FileSystem } from "../stores/file-system";
import { join } from "../stores/path";

export interface ShardJob {
  readonly folder: string;
  readonly name: string;
  readonly boxes: readonly ShardBox[];
  readonly sha256: boolean;
}

export interface ShardResult {
  readonly file: FileRecord;
  readonly boxes: readonly WrittenBox[];
}

/** What is gathered before it is written. */
const RUN = 1 << 20;
/** Larger boxes are written where they lie. */
const SMALL = 64 << 10;

/** Small boxes that follow each other in the file: a hundred thousand of them are a hundred writes. */
class Run {
  readonly #writer: ShardWriter;
  readonly #progress: (bytes: number) => void;
  #buffer: Uint8Array | undefined;
  #lengths: number[] = [];
  #filled = 0;

  constructor(writer: ShardWriter, progress: (bytes: number) => void) {
    this.#writer = writer;
    this.#progress = progress;
  }

  takes(contents: Uint8Array): boolean {
    if (contents.length > SMALL || this.#filled + contents.length > RUN) return false;
    this.#buffer ??= new Uint8Array(RUN);
    this.#buffer.set(contents, this.#filled);
    this.#filled += contents.length;
    this.#lengths.push(contents.length);
    return true;
  }

  /** `next`: the number of the box after the gathered ones. */
  async flush(next: number): Promise<void> {
    if (this.#lengths.length === 0) return;
    const [lengths, filled] = [this.#lengths, this.#filled];
    await this.#writer.writeRun(next - lengths.length, lengths, this.#buffer!.subarray(0, filled));
    this.#progress(filled);
    [this.#lengths, this.#filled] = [[], 0];
  }
}

/** `bytes` gives a box's contents at the moment it is written. */
export async function writeShard(
  job: ShardJob,
  bytes: (box: number) => Uint8Array | Promise<Uint8Array>,
  fileSystem: FileSystem,
  progress: (bytes: number) => void,
): Promise<ShardResult> {
  const pool = new FilePool(fileSystem, "update");
  try {
    const writer = new ShardWriter(job.folder, job.name, job.boxes, { fileSystem, pool });
    await writer.create();
    const run = new Run(writer, progress);
    for (let box = 0; box < job.boxes.length; box++) {
      const given = bytes(box);
      const contents = given instanceof Promise ? await given : given;
      if (run.takes(contents)) continue;
      await run.flush(box);
      if (run.takes(contents)) continue;
      await writer.write(box, contents);
      progress(contents.byteLength);
    }
    await run.flush(job.boxes.length);
    const result = await writer.finish({ sha256: job.sha256 });
    await pool.close();
    return result;
  } catch (error) {
    await pool.close().catch(() => {}); // the first error is the one that tells
    throw diskError(error, join(job.folder, job.name), "writing");
  }
}
