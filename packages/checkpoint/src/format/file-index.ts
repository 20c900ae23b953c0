/** Where boxes are in their files. Boxes follow each other in the order of files, so their places need not be written. */
import { check, OptError } from "@opt/core";
import { type Box, elementsIn, wholeOf } from "../layout/box";
import type { StoredFile } from "../stores/file-system";
import { crc32, crcText } from "./crc32";
import type { Division } from "./division";
import { bytesPerElement } from "./dtype";
import { type FileRecord, type ManifestBox, type ManifestTensor, tensorOrder } from "./shard";

export interface DividedTensor extends Omit<ManifestTensor, "boxes"> {
  readonly division: Division;
}

/** Of one file: the tensor of each box, by its place in the order of files, and where the box begins; the last is the file's end. */
interface Table {
  readonly tensors: Uint32Array;
  readonly begins: Float64Array;
}

export class FileIndex {
  readonly files: readonly FileRecord[];
  /** In the order that they were given in. */
  readonly tensors: readonly LocatedTensor[];
  readonly #inOrder: readonly LocatedTensor[];
  readonly #tables = new Map<number, Table>();
  /** In the file of all checksums, where those of each file end. */
  readonly #ends: number[] = [];
  readonly #checksums = new Map<number, Uint32Array | Error>();

  constructor(files: readonly FileRecord[], tensors: readonly DividedTensor[]) {
    this.files = files;
    const order = new Map([...tensors].sort(tensorOrder).map((tensor, place) => [tensor, place]));
    this.tensors = tensors.map((tensor) => new LocatedTensor(tensor, order.get(tensor)!, this));
    this.#inOrder = this.tensors.toSorted((a, b) => a.place - b.place);
  }

  /** How many boxes there are. */
  get boxes(): number {
    return this.tensors.reduce((sum, { division }) => sum + division.files.length, 0);
  }

  /** The boxes of a file, in its order. */
  boxesIn(file: number): { readonly tensor: LocatedTensor; readonly box: ManifestBox }[] {
    return this.#inOrder.flatMap((tensor) =>
      tensor.division.inFile(file).map((index) => ({ tensor, box: tensor.box(index) })),
    );
  }

  countIn(file: number): number {
    return this.#table(file).tensors.length;
  }

  /** Where the `nth` of a tensor's boxes in a file begins, and which of the file's boxes it is. */
  find(file: number, { place }: LocatedTensor, nth: number): { byteOffset: number; ordinal: number } {
    const { tensors, begins } = this.#table(file);
    let [low, high] = [0, tensors.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tensors[middle]! < place) low = middle + 1;
      else high = middle;
    }
    return { byteOffset: begins[low + nth]!, ordinal: low + nth };
  }

  /** @throws OptError CORRUPT if the file has another length than its boxes */
  #table(file: number): Table {
    const known = this.#tables.get(file);
    if (known) return known;
    const { name, headerLength, byteLength } = this.files[file]!;
    const tensors: number[] = [];
    const begins = [headerLength];
    for (const { place, dtype, division } of this.#inOrder) {
      for (const index of division.inFile(file)) {
        tensors.push(place);
        begins.push(begins.at(-1)! + elementsIn(division.boxes[index]!) * bytesPerElement(dtype));
      }
    }
    const problem = () => `its boxes end at byte ${begins.at(-1)}, the manifest says that it has ${byteLength}.`;
    check(begins.at(-1) === byteLength, "CORRUPT", name, problem, "Restore the manifest, or use another step.");
    const table = { tensors: Uint32Array.from(tensors), begins: Float64Array.from(begins) };
    this.#tables.set(file, table);
    return table;
  }

  /** Takes the checksums of a file's boxes, in its order, or why there are none. */
  know(file: number, checksums: Uint32Array | Error): void {
    this.#checksums.set(file, checksums);
  }

  checksumsOf(file: number): Uint32Array {
    const known = this.#checksums.get(file);
    if (known instanceof Error) throw known;
    if (!known) throw new OptError("INTERNAL", this.files[file]!.name, "its checksums must be read before its boxes.");
    return known;
  }

  /** Reads the checksums of a file once, with `read` from the file of all checksums. What is wrong is thrown when one is wanted. */
  async readChecksums(file: number, where: string, read: StoredFile["read"]): Promise<void> {
    if (this.#checksums.has(file)) return;
    const { name, boxes, boxesCrc32 } = this.files[file]!;
    const fail = (problem: string): never => {
      const advice = "Restore the file, use another step, or load with verify: false.";
      throw new OptError("CORRUPT", where, problem, advice);
    };
    try {
      const { begin, end } = this.rangeOf(file);
      if (this.countIn(file) !== boxes)
        fail(`${name} must have ${this.countIn(file)} boxes, the manifest says ${boxes}.`);
      const checksums = new Uint32Array(boxes!);
      await read(bytesOf(checksums), begin);
      const got = crc32(bytesOf(checksums));
      if (got !== boxesCrc32)
        fail(`bytes ${begin} to ${end} must have checksum ${crcText(boxesCrc32!)}, got ${crcText(got)}.`);
      this.know(file, checksums);
    } catch (error) {
      this.know(file, error as Error);
    }
  }

  /** Where a file's checksums are in the file of all checksums. */
  rangeOf(file: number): { begin: number; end: number } {
    if (this.#ends.length === 0) {
      let end = 0;
      for (const { boxes } of this.files) {
        end += 4 * boxes!;
        this.#ends.push(end);
      }
    }
    return { begin: this.#ends[file - 1] ?? 0, end: this.#ends[file]! };
  }

  /** What is in the file of all checksums, in the order of files. */
  get checksums(): Uint8Array {
    const all = this.files.map((_, file) => bytesOf(this.checksumsOf(file)));
    const bytes = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0));
    let end = 0;
    for (const one of all) {
      bytes.set(one, end);
      end += one.length;
    }
    return bytes;
  }

  /** What a manifest says about a file, and about its part of the checksums. */
  recordOf(file: number): FileRecord {
    const checksums = this.checksumsOf(file);
    return { ...this.files[file]!, boxes: checksums.length, boxesCrc32: crc32(bytesOf(checksums)) };
  }
}

function bytesOf({ buffer, byteOffset, byteLength }: Uint32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** A tensor of many boxes, which are made when they are asked for. */
export class LocatedTensor implements ManifestTensor {
  readonly name: string;
  readonly dtype: ManifestTensor["dtype"];
  readonly shape: readonly number[];
  readonly role: ManifestTensor["role"];
  declare readonly follows?: string;
  readonly division: Division;

  /** `place`: in the order of files. */
  constructor(
    { name, dtype, shape, role, follows, division }: DividedTensor,
    readonly place: number,
    private readonly index: FileIndex,
  ) {
    this.name = name;
    this.dtype = dtype;
    this.shape = shape;
    this.role = role;
    if (follows !== undefined) this.follows = follows;
    this.division = division;
  }

  get boxes(): readonly ManifestBox[] {
    return this.division.files.map((_, box) => this.box(box));
  }

  box(index: number): ManifestBox {
    const file = this.division.files[index]!;
    const { byteOffset, ordinal } = this.index.find(file, this, this.division.inFile(file).indexOf(index));
    const box = this.division.boxes[index]!;
    return new LocatedBox(box, file, byteOffset, elementsIn(box) * bytesPerElement(this.dtype), ordinal, this.index);
  }

  /** The boxes that together fill `target`. @throws OptError CORRUPT, MISSING */
  sourcesOf(target: Box): number[] {
    return this.division.sourcesOf(target, this);
  }

  /** @throws OptError CORRUPT for boxes that overlap, MISSING for a gap */
  checkWhole(): void {
    this.sourcesOf(wholeOf(this.shape));
  }
}

class LocatedBox implements ManifestBox {
  readonly offset: readonly number[];
  readonly size: readonly number[];

  constructor(
    { offset, size }: Box,
    readonly file: number,
    readonly byteOffset: number,
    readonly byteLength: number,
    private readonly ordinal: number,
    private readonly index: FileIndex,
  ) {
    this.offset = offset;
    this.size = size;
  }

  get crc32(): number {
    return this.index.checksumsOf(this.file)[this.ordinal]!;
  }
}
