/** HDF5 through h5wasm. Reads of pages that are not there yet fail; the pages are fetched, and the operation is done again. */
import { check, OptError } from "@opt/core";
import type { Dataset, File, Group } from "h5wasm";
import { mostTensors } from "../../format/source";
import { type ByteSource, readBytes } from "../bytes/source";
import { type Slab, slabs } from "./slabs";

const PAGE = 16 * 1024;
/** Pages kept between operations: the file's own tables are asked for again and again. */
const KEPT_PAGES = 256;
const INPUT_OUTPUT_ERROR = 29;
const MOST_COMPRESSED = 1032; // deflate's limit: no filter of HDF5's own packs tighter
const SLAB_BYTES = 8 * 1024 * 1024;
const DEEPEST = 32;
const LARGEST_CHUNK = 64 * 1024 * 1024;
/** Moments of zeros pack well, weights hardly: a file unpacks to a few times its length. */
const FREE_UNPACKED = 64 * 1024 * 1024;
const UNPACKED_PER_BYTE = 64;

type Library = typeof import("h5wasm");

/** What is used of Emscripten's in-memory file system (its own declarations stop short of it). */
interface Files {
  getStream(descriptor: number): { stream_ops: object };
  createFile(parent: string, name: string, properties: object, canRead: boolean, canWrite: boolean): object;
  unlink(path: string): void;
  readonly ErrnoError: new (code: number) => Error;
}

let opened = 0;
/** What the library last said on its error output: it reports some failures in no other way. */
let complaint = "";

/** h5wasm is an optional peer: 4 MB that only readers of HDF5 need. */
async function loadLibrary(): Promise<{ library: Library; files: Files }> {
  let library: Library;
  try {
    library = await import("h5wasm"); // within try, webpack builds without it
  } catch (cause) {
    const problem = "reading HDF5 needs the package h5wasm, which does not load.";
    throw new OptError("UNSUPPORTED", "hdf5", problem, "Install it: npm install h5wasm.", { cause });
  }
  const { FS: files } = (await library.ready) as unknown as { FS: Files };
  const decoder = new TextDecoder();
  const errors = files.getStream(2);
  errors.stream_ops = {
    ...errors.stream_ops,
    write(_stream: unknown, bytes: Uint8Array, offset: number, length: number) {
      if (complaint.length < 10_000) complaint += decoder.decode(bytes.slice(offset, offset + length));
      return length;
    },
  };
  return { library, files };
}

export interface Hdf5Dataset {
  /** Path inside of the file, without the leading slash. */
  readonly name: string;
  readonly shape: readonly number[];
  readonly kind: "int" | "uint" | "float" | "bool";
  readonly bytesPerElement: number;
  readonly bytes: ByteSource;
}

/** An open file. `datasets` lists those of numbers; others (texts, compounds) are left out. */
export class Hdf5File {
  readonly #source: ByteSource;
  readonly #library: Library;
  readonly #files: Files;
  readonly #mount: string;
  readonly #pages = new Map<number, Uint8Array>();
  #missing = new Set<number>();
  #file: File | undefined;

  private constructor(source: ByteSource, library: Library, files: Files) {
    this.#source = source;
    this.#library = library;
    this.#files = files;
    this.#mount = `opt-${opened++}.h5`;
  }

  /** @throws OptError CORRUPT for what is no HDF5 file */
  static async open(source: ByteSource): Promise<Hdf5File> {
    const { library, files } = await loadLibrary();
    const file = new Hdf5File(source, library, files);
    file.#mountSource();
    try {
      file.#file = await file.#run(() => new library.File(`/${file.#mount}`, "r"));
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** @throws OptError REFUSED for more datasets, or more bytes once unpacked, than a file of this length is likely to hold */
  async datasets(): Promise<Hdf5Dataset[]> {
    const found: Hdf5Dataset[] = [];
    const most = mostTensors(this.#source.byteLength);
    const mostUnpacked = FREE_UNPACKED + UNPACKED_PER_BYTE * this.#source.byteLength;
    let unpacked = 0;
    // Hard links may make a group its own grandchild.
    let budget = this.#source.byteLength / 16 + 16;
    const visit = async (group: Group, path: string, depth: number): Promise<void> => {
      for (const key of await this.#run(() => group.keys())) {
        if (--budget < 0 || depth > DEEPEST) throw this.#corrupt("groups nest without end");
        const item = await this.#run(() => group.get(key));
        const name = path === "" ? key : `${path}/${key}`;
        if (item instanceof this.#library.Group) await visit(item, name, depth + 1);
        else if (item instanceof this.#library.Dataset) {
          const { dataset, chunkBytes } = await this.#describe(item, name);
          if (dataset === undefined) continue;
          found.push(dataset);
          unpacked += dataset.bytes.byteLength;
          const fits = unpacked <= mostUnpacked && chunkBytes <= LARGEST_CHUNK;
          check(
            found.length <= most && fits,
            "REFUSED",
            this.#source.path,
            () =>
              `${name} makes it ${found.length} datasets that unpack to ${unpacked} bytes, in chunks of ${chunkBytes}.`,
            "Save it without compression.",
          );
        }
      }
    };
    await visit(this.#file!, "", 0);
    return found;
  }

  async close(): Promise<void> {
    this.#file?.close();
    this.#files.unlink(`/${this.#mount}`);
    this.#pages.clear();
  }

  /** What a dataset is, undefined for what is no array of numbers; and how many bytes each of its packed chunks has. */
  async #describe(dataset: Dataset, name: string): Promise<{ dataset?: Hdf5Dataset; chunkBytes: number }> {
    const { shape, chunks, type, size, signed, littleEndian, enum_type } = await this.#run(() => dataset.metadata);
    const kind = type === 0 ? (signed ? "int" : "uint") : type === 1 ? "float" : type === 8 ? "bool" : undefined;
    if (kind === undefined || shape === null) return { chunkBytes: 0 };
    if (kind === "bool" && (size !== 1 || enum_type?.nmembers !== 2)) return { chunkBytes: 0 };
    if (!littleEndian && size > 1) {
      throw new OptError("UNSUPPORTED", this.#source.path, `${name} is big-endian.`, "Save it in little-endian order.");
    }
    const limit = this.#source.byteLength * (chunks === null ? 1 : MOST_COMPRESSED);
    const byteLength = shape.reduce((product, length) => product * length, size);
    const chunkBytes = (chunks ?? []).reduce((product, length) => product * length, size);
    if (!(byteLength <= limit && (chunks === null || chunkBytes <= limit))) {
      throw this.#corrupt(`${name} claims ${byteLength} bytes`);
    }
    const bytes: ByteSource = {
      path: `${this.#source.path}:${name}`,
      byteLength,
      read: (target, position) => this.#readDataset(dataset, shape, size, target, position),
    };
    return {
      dataset: { name, shape, kind, bytesPerElement: size, bytes },
      chunkBytes: chunks === null ? 0 : chunkBytes,
    };
  }

  async #readDataset(dataset: Dataset, shape: readonly number[], size: number, target: Uint8Array, position: number) {
    const end = position + target.byteLength;
    for (const slab of slabs(shape, Math.floor(position / size), Math.ceil(end / size), SLAB_BYTES / size)) {
      const bytes = await this.#run(() => this.#readSlab(dataset, slab, size));
      const begin = slab.first * size;
      const from = Math.max(position, begin);
      const to = Math.min(end, begin + bytes.byteLength);
      target.set(bytes.subarray(from - begin, to - begin), from - position);
    }
  }

  /** The library's own call: its typed arrays know neither float16 nor scalars, and hide the status. */
  #readSlab({ file_id, path }: Dataset, { ranges, count }: Slab, size: number): Uint8Array {
    const library = this.#library.Module;
    const address = library._malloc(Math.max(1, count * size));
    if (address === 0) throw new OptError("OUT_OF_MEMORY", this.#source.path, `no ${count * size} bytes left.`, "");
    try {
      const big = (pick: (range: [number, number]) => number): bigint[] | null =>
        ranges.length === 0 ? null : ranges.map((range) => BigInt(pick(range)));
      const lengths = big(([start, stop]) => stop - start);
      const starts = big(([start]) => start);
      const steps = big(() => 1);
      const status = library.get_dataset_data(file_id, path, lengths, starts, steps, BigInt(address));
      if (status < 0) throw new Error(`reading ${path} failed`);
      return library.HEAPU8.slice(address, address + count * size);
    } finally {
      library._free(address);
    }
  }

  #mountSource(): void {
    const node = this.#files.createFile("/", this.#mount, {}, true, false) as { stream_ops: object };
    const { byteLength } = this.#source;
    Object.defineProperty(node, "usedBytes", { get: () => byteLength, set: () => undefined });
    node.stream_ops = {
      ...node.stream_ops,
      read: (_stream: unknown, target: Uint8Array, offset: number, length: number, position: number): number =>
        this.#readPages(target, offset, Math.max(0, Math.min(length, byteLength - position)), position),
    };
  }

  #readPages(target: Uint8Array, offset: number, length: number, position: number): number {
    const first = Math.floor(position / PAGE);
    const end = Math.ceil((position + length) / PAGE);
    for (let page = first; page < end; page++) if (!this.#pages.has(page)) this.#missing.add(page);
    if (this.#missing.size > 0) throw new this.#files.ErrnoError(INPUT_OUTPUT_ERROR);
    for (let page = first; page < end; page++) {
      const start = page * PAGE;
      const from = Math.max(position, start);
      const to = Math.min(position + length, start + PAGE);
      target.set(this.#pages.get(page)!.subarray(from - start, to - start), offset + from - position);
    }
    return length;
  }

  /** Runs an operation again until every page that it reads is there. @throws OptError CORRUPT if it fails for another reason */
  async #run<T>(operation: () => T): Promise<T> {
    for (;;) {
      this.#missing = new Set();
      complaint = "";
      let failure: unknown;
      try {
        const result = operation();
        if (this.#missing.size === 0 && complaint === "") {
          this.#forget();
          return result;
        }
      } catch (error) {
        failure = error;
      }
      if (this.#missing.size === 0) throw this.#corrupt(reasonOf(complaint, failure), failure);
      for (const page of this.#missing) {
        const start = page * PAGE;
        const length = Math.min(PAGE, this.#source.byteLength - start);
        this.#pages.set(page, await readBytes(this.#source, start, length));
      }
    }
  }

  #forget(): void {
    for (const page of this.#pages.keys()) {
      if (this.#pages.size <= KEPT_PAGES) return;
      this.#pages.delete(page);
    }
  }

  #corrupt(problem: string, cause?: unknown): OptError {
    return new OptError("CORRUPT", this.#source.path, `HDF5: ${problem}.`, "Use an intact copy.", { cause });
  }
}

function reasonOf(said: string, failure: unknown): string {
  const reasons = [...said.matchAll(/line \d+ in \w+\(\): (.+)/g)].map(([, reason]) => reason!);
  return reasons.at(-1) ?? (failure instanceof Error ? failure.message : "the library can't read the file");
}
