/** Every checkpoint format once it is open: named tensors made of boxes, whose bytes are read when asked for. */
import { check } from "@opt/core";
import type { Box } from "../layout/box";
import type { Layout } from "../layout/layout";
import type { FilePool } from "../stores/file-pool";
import { type Checksum, diskError, type FileSystem, type FolderEntry, type StoredFile } from "../stores/file-system";
import { bytesPerElement, type StoredDType } from "./dtype";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export function isObject(value: unknown): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `param`: the model's; `state`: an optimizer's, which follows a parameter, or a run's; `scalar`: one number that every rank holds. */
export type Role = "param" | "state" | "scalar";

/** A rectangular part of a tensor, stored row-major and little-endian. Offsets and sizes count elements, one per dimension. */
export interface SourceBox {
  readonly offset: readonly number[];
  readonly size: readonly number[];
  readonly byteLength: number;
  /** For messages: the file (relative to the source's path) and where in it the box begins, if it lies there in one piece. */
  readonly file: string;
  readonly byteOffset?: number;
  /** For messages: the part of the file that its bytes are packed in. */
  readonly packed?: { readonly begin: number; readonly byteLength: number };
  readonly crc32?: number | undefined;
  /** `crc32` is known once something of its file was read. */
  readonly isSummedLater?: boolean;
  /** `read` compares what holds its bytes with a checksum before it gives any out. */
  readonly isChecked?: boolean;
  /** Fills all of `target` with the box's bytes from `start` on. @throws OptError CORRUPT if the file is shorter than it says */
  read(target: Uint8Array, start: number, sum?: Checksum): Promise<void>;
  /** Where its bytes lie as they are, so that small neighbours are read at once. */
  readonly stored?: { readonly file: StoredFile; readonly begin: number } | undefined;
}

/** A box that lies in a file in one piece. */
export class StoredBox implements SourceBox {
  readonly #file: StoredFile;

  constructor(
    readonly offset: readonly number[],
    readonly size: readonly number[],
    readonly file: string,
    readonly byteOffset: number,
    readonly byteLength: number,
    readonly crc32: number | undefined,
    stored: StoredFile,
  ) {
    this.#file = stored;
  }

  /** On the class, so that no copy of a box's fields has it: a copy may read something else. */
  get stored() {
    return { file: this.#file, begin: this.byteOffset };
  }

  read(target: Uint8Array, start: number, sum?: Checksum): Promise<void> {
    return this.#file.read(target, this.byteOffset + start, sum);
  }
}

export interface SourceTensor {
  readonly name: string;
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  readonly role?: Role;
  /** The parameter whose state this is. */
  readonly follows?: string;
  readonly boxes: readonly SourceBox[];
  /** Finds boxes without making all of `boxes`. */
  readonly finder?: BoxFinder | undefined;
}

/** The boxes of a tensor by their index. */
export interface BoxFinder {
  /** Those that together fill a region. @throws OptError CORRUPT for boxes that overlap, MISSING for a gap */
  sourcesOf(region: Box): readonly number[];
  box(index: number): SourceBox;
}

/** A tensor, and how it is read. */
export interface SelectedTensor extends SourceTensor {
  /** Compares what is read of its boxes with their checksums. */
  readonly verification?: Verifier | undefined;
  readonly conversion?: Conversion | undefined;
}

export interface Verifier {
  /**
   * Takes bytes of a box; `own` is their checksum, if known; `isSummed`: its other bytes are read too.
   *
   * @throws OptError CORRUPT once a sum is wrong
   */
  accept(tensor: string, box: SourceBox, begin: number, bytes: Uint8Array, isSummed: boolean, own?: number): void;
}

/** From the elements that boxes hold to those of the tensor. */
export interface Conversion {
  readonly widths: { readonly from: number; readonly to: number };
  convert(source: Uint8Array, target: Uint8Array): void;
}

/** Bytes of an element as its boxes hold it. */
export function storedWidth({ dtype, conversion }: SelectedTensor): number {
  return conversion?.widths.from ?? bytesPerElement(dtype);
}

type Description = Omit<SelectedTensor, "boxes">;

/** A tensor whose boxes are made when it is their turn: of a hundred thousand tensors' boxes few are needed at a time. */
export class LazyTensor implements SelectedTensor {
  readonly name: string;
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  declare readonly role?: Role;
  declare readonly follows?: string;
  readonly verification: Verifier | undefined;
  readonly conversion: Conversion | undefined;
  readonly finder: BoxFinder | undefined;
  readonly #boxes: () => readonly SourceBox[];

  constructor(described: Description, boxes: () => readonly SourceBox[]) {
    const { name, dtype, shape, role, follows, verification, conversion, finder } = described;
    this.name = name;
    this.dtype = dtype;
    this.shape = shape;
    this.verification = verification;
    this.conversion = conversion;
    this.finder = finder;
    if (role !== undefined) this.role = role;
    if (follows !== undefined) this.follows = follows;
    this.#boxes = boxes;
  }

  get boxes(): readonly SourceBox[] {
    return this.#boxes();
  }
}

/** The same boxes under another name, in another role, or read in another way. */
export function redescribed(tensor: SourceTensor, changes: Partial<Description>): SelectedTensor {
  return new LazyTensor({ ...tensor, ...changes }, () => tensor.boxes);
}

/** An object of a file that is no tensor and no plain value. */
export interface Skipped {
  /** Where it stands; "" for the file's outermost object. */
  readonly name: string;
  /** Its class, or another description. */
  readonly what: string;
}

export interface TensorSource {
  /** For people, e.g. "safetensors", "MindSpore ckpt". */
  readonly format: string;
  readonly path: string;
  readonly step?: number;
  readonly tensors: ReadonlyMap<string, SourceTensor>;
  /** Everything that is no tensor. */
  readonly values: { readonly [key: string]: Json };
  /** Tensors that are there but of no element type that we know: why, by name. */
  readonly unreadable?: ReadonlyMap<string, string>;
  /** Objects of classes that are no data, which stayed unread: they may hold tensors, which were read. */
  readonly skipped?: readonly Skipped[];
  /** How the format nests names, where writing it again needs more than the names. */
  readonly structure?: Json;
  close(): Promise<void>;
}

/** What stands at a path, read once, so that every importer can say whether it is its own. */
export interface Candidate {
  readonly path: string;
  readonly name: string;
  readonly kind: "file" | "folder";
  /** The first bytes of a file, at most 64. */
  readonly head: Uint8Array;
  readonly byteLength: number;
  readonly entries: readonly FolderEntry[];
  /** The members of a zip archive; undefined for other files, and where the directory cannot be read. */
  readonly members?: readonly string[] | undefined;
  /** What the last folder with a number in it holds: of a folder of steps, its newest step or another. */
  readonly inside?: readonly FolderEntry[] | undefined;
}

/** What keeps a small file from filling the memory. */
export interface ReadLimits {
  /** Most bytes of a header or manifest. Default: 100 MB for a header, 400 MiB for a manifest. */
  readonly maxHeaderBytes?: number;
  /** Most objects that a pickle may make: names, numbers of lists, tensors. Default: grows with the file, up to 4 million. */
  readonly maxObjects?: number;
}

/** What only the user can tell about a checkpoint of another system. */
export interface ImportOptions extends ReadLimits {
  /** How the ranks that wrote it held each tensor, where no file of theirs says so. */
  readonly sourceLayout?: Layout;
  /** Which of several steps. */
  readonly step?: number;
}

/** The number of tensors that a file of so many bytes may name: hostile files name millions. */
export function mostTensors(byteLength: number): number {
  return 100_000 + Math.floor(byteLength / 1024);
}

/** Reads what stands at a path in one format. */
export interface FormatReader {
  readonly format: string;
  open(path: string, fileSystem: FileSystem, options?: ImportOptions): Promise<TensorSource>;
}

/** A file read at random positions. */
export interface RandomAccess extends StoredFile {
  readonly path: string;
  readonly byteLength: number;
  close(): Promise<void>;
}

/** Opens a file for random reading. @throws OptError MISSING, IO */
export async function openRandomAccess(fileSystem: FileSystem, path: string): Promise<RandomAccess> {
  try {
    const file = await fileSystem.open(path, "read");
    const byteLength = await file.size();
    const { read } = filling(path, (...range) => file.read(...range));
    return { path, byteLength, read, close: () => file.close() };
  } catch (error) {
    throw diskError(error, path, "opening");
  }
}

/** A file whose reads fill all of their target, or throw CORRUPT past the end, IO. */
function filling(
  path: string,
  read: (target: Uint8Array, position: number, sum?: Checksum) => Promise<number>,
): StoredFile {
  return {
    async read(target, position, sum) {
      let count: number;
      try {
        count = await read(target, position, sum);
      } catch (error) {
        throw diskError(error, path, "reading");
      }
      check(
        count >= target.length,
        "CORRUPT",
        path,
        () =>
          `bytes ${position} to ${position + target.length} must be there, but the file ends at ${position + count}.`,
        "The file is truncated: copy it again.",
      );
    },
  };
}

/** A file that the pool holds open only while it is in use. Its reads fill all of their target, or throw. */
export function pooled(pool: FilePool, path: string): StoredFile {
  return filling(path, (...range) => pool.use(path, (file) => file.read(...range)));
}

/** Reads a small file whole. @throws OptError REFUSED above `limit` bytes, so that nobody's header fills the memory */
export async function readWhole(fileSystem: FileSystem, path: string, limit: number): Promise<Uint8Array> {
  const file = await openRandomAccess(fileSystem, path);
  try {
    check(
      file.byteLength <= limit,
      "REFUSED",
      path,
      () => `must be at most ${limit} bytes, got ${file.byteLength}.`,
      "To trust the file, raise maxHeaderBytes.",
    );
    const bytes = new Uint8Array(file.byteLength);
    await file.read(bytes, 0);
    return bytes;
  } finally {
    await file.close();
  }
}
