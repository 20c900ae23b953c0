/** Zip archives as checkpoints use them: stored members, found by the central directory and read where they lie. */
import { check, OptError } from "@opt/core";
import yauzl, { type Entry } from "yauzl";
import { type ImportOptions, mostTensors } from "../../format/source";
import { type ByteSource, checkRange, partOf, readBytes, verified } from "./byte-source";

// The directory's entries follow each other, and yauzl asks for each one by itself.
const WINDOW = 64 * 1024;

/** Members of a PyTorch file that are no storages. */
const OTHER_MEMBERS = 16;
const TRUST = "If you trust it, raise maxTensors (--max-tensors).";

/** The members of an archive by name; each is checked against its CRC-32 when it is first read. Throws CORRUPT, REFUSED, UNSUPPORTED. */
export async function openZip(source: ByteSource, options: ImportOptions = {}): Promise<Map<string, ByteSource>> {
  const reader = new SourceReader(source);
  try {
    return await Promise.race([readMembers(source, reader, options), reader.broken]);
  } catch (error) {
    throw zipError(source.path, reader.failure ?? error);
  }
}

async function readMembers(
  source: ByteSource,
  reader: SourceReader,
  options: ImportOptions,
): Promise<Map<string, ByteSource>> {
  // Strict names: yauzl itself refuses absolute ones, `..` and backslashes. Zip64 and sizes are its business too.
  const archive = await yauzl.fromRandomAccessReaderPromise(reader, source.byteLength, {
    autoClose: false,
    strictFileNames: true,
  });
  const entries: Entry[] = [];
  const most = mostTensors(source.byteLength, options) + OTHER_MEMBERS;
  for await (const entry of archive.eachEntry()) {
    check(entries.length < most, "REFUSED", source.path, () => `it has more than ${most} members.`, TRUST);
    entries.push(entry);
  }
  entries.sort((a, b) => a.relativeOffsetOfLocalHeader - b.relativeOffsetOfLocalHeader);

  const members = new Map<string, ByteSource>();
  let end = 0;
  for (const entry of entries) {
    const path = `${source.path}:${entry.fileName}`;
    if (members.has(entry.fileName)) throw corrupt(path, "two members have this name");
    if (entry.isEncrypted() || entry.compressionMethod !== 0) throw packed(path, entry);
    if (entry.relativeOffsetOfLocalHeader < end) throw corrupt(path, "the member overlaps the one before it");
    const { fileDataStart } = await archive.readLocalFileHeaderPromise(entry, { minimal: true });
    end = fileDataStart + entry.uncompressedSize;
    members.set(entry.fileName, verified(partOf(source, fileDataStart, entry.uncompressedSize, path), entry.crc32));
  }
  return members;
}

function corrupt(path: string, problem: string, cause?: unknown): OptError {
  return new OptError("CORRUPT", path, `${problem}.`, "The archive is damaged: use an intact copy.", { cause });
}

function packed(path: string, entry: Entry): OptError {
  const how = entry.isEncrypted() ? "encrypted" : `compressed by method ${entry.compressionMethod}`;
  return new OptError(
    "UNSUPPORTED",
    path,
    `members must be stored, this one is ${how}.`,
    "Zip it again with `zip -0`.",
  );
}

function zipError(path: string, error: unknown): OptError {
  if (error instanceof OptError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (/absolute path|invalid relative path|invalid characters in fileName/.test(message)) {
    return new OptError("REFUSED", path, `a member leaves the archive: ${message}.`, "Do not unpack this file.");
  }
  return corrupt(path, `no readable zip archive: ${message}`, error);
}

/** A source as yauzl wants it, with a window so that small reads do not each go to the disk. */
class SourceReader extends yauzl.RandomAccessReader {
  /** The first refusal of the source; yauzl passes its own words for it on. */
  failure: unknown;
  /** Rejects when yauzl itself throws while it takes bytes: it would never answer then. */
  readonly broken: Promise<never>;
  #break!: (error: unknown) => void;
  #window: Uint8Array = new Uint8Array(0);
  #windowStart = 0;
  readonly #source: ByteSource;

  constructor(source: ByteSource) {
    super();
    this.#source = source;
    this.broken = new Promise((_, reject) => {
      this.#break = reject;
    });
    this.broken.catch(() => undefined);
  }

  override read(
    target: Buffer,
    offset: number,
    length: number,
    position: number,
    done: (error: Error | null, bytesRead?: number) => void,
  ): void {
    this.#range(position, length)
      .then(
        (bytes) => {
          target.set(bytes, offset);
          done(null, length);
        },
        (error: Error) => {
          this.failure ??= error;
          done(error);
        },
      )
      .catch((error: unknown) => this.#break(error));
  }

  async #range(position: number, length: number): Promise<Uint8Array> {
    checkRange(this.#source, position, length);
    if (position < this.#windowStart || position + length > this.#windowStart + this.#window.byteLength) {
      const available = Math.min(Math.max(length, WINDOW), this.#source.byteLength - position);
      this.#window = await readBytes(this.#source, position, available);
      this.#windowStart = position;
    }
    const start = position - this.#windowStart;
    return this.#window.subarray(start, start + length);
  }
}
