/** Elements of tensors, one tensor behind the other, as they travel: from and into the memory where they lie, where that is the host's. */
import { keep, span, type Tensor } from "@opt/core";
import { byteSize } from "@opt/core/backend";
import { type Part, PIECE_BYTES } from "./parts";
import { bytesOf, receiveBuffer, roomLike } from "./staging";

/** Where a piece is sent from and comes to. */
export interface Place {
  readonly bytes: Uint8Array;
  /** Makes `bytes` what the tensors hold, and the other way round: both do nothing where they are one. */
  read(): void;
  put(): void;
  /** It is not used any more. */
  release(): void;
}

/** Copies of pieces, for the next ones: new memory costs more than what is copied. */
const spare: Uint8Array[] = [];
const MOST_SPARE = 64;

interface Segment extends Part {
  readonly tensor: Tensor;
  /** Its own, or a copy. */
  readonly bytes: Uint8Array;
  done(): void;
}

export class FlatTensors {
  readonly size: number;
  /** Bytes of an element. */
  readonly width: number;
  readonly #segments: readonly Segment[];

  private constructor(
    readonly tensors: readonly Tensor[],
    read: readonly Uint8Array[],
  ) {
    let at = 0;
    this.#segments = tensors.map((tensor, i) => {
      const begin = at;
      at += tensor.size;
      const { bytes, done } = receiveBuffer(tensor);
      if (bytes.buffer !== read[i]!.buffer) bytes.set(read[i]!);
      return { tensor, begin, end: at, bytes, done };
    });
    this.size = at;
    this.width = byteSize(tensors[0]!.dtype);
  }

  /** Of one dtype and device: at once where that answers at once. */
  static of(tensors: readonly Tensor[]): FlatTensors | Promise<FlatTensors> {
    const read = tensors.map(bytesOf);
    const isThere = (bytes: (typeof read)[number]): bytes is Uint8Array => bytes instanceof Uint8Array;
    if (read.every(isThere)) return new FlatTensors(tensors, read);
    return Promise.all(read).then((all) => new FlatTensors(tensors, all));
  }

  /** The bytes of a piece: where they lie, or a copy where it reaches into several tensors. */
  at(piece: Part): Place {
    const direct = this.#direct(piece);
    if (direct) return { bytes: direct.bytes, read() {}, put() {}, release() {} };
    const length = (piece.end - piece.begin) * this.width;
    const buffer = (length <= PIECE_BYTES ? spare.pop() : undefined) ?? new Uint8Array(Math.max(length, PIECE_BYTES));
    const bytes = buffer.subarray(0, length);
    return {
      bytes,
      read: () => this.#gather(piece, bytes),
      put: () => this.#scatter(piece, bytes),
      release: () => {
        if (spare.length < MOST_SPARE && buffer.byteLength === PIECE_BYTES) spare.push(buffer);
      },
    };
  }

  /** A piece as a tensor, for its owner to dispose before anything is put there. */
  tensor(piece: Part): Tensor {
    const direct = this.#direct(piece);
    if (direct) return keep(span(direct.tensor, direct.begin, direct.end));
    const [like] = this.tensors as [Tensor];
    const copy = roomLike(like, [piece.end - piece.begin]);
    const { bytes, done } = receiveBuffer(copy);
    this.#gather(piece, bytes);
    done();
    return copy;
  }

  /** All has been put: the tensors have it. */
  done(): void {
    for (const segment of this.#segments) segment.done();
  }

  /** Where a piece lies in one tensor, by elements of that. */
  #direct({ begin, end }: Part): { tensor: Tensor; begin: number; end: number; bytes: Uint8Array } | undefined {
    const segment = this.#segments.find((each) => each.begin <= begin && end <= each.end);
    if (segment === undefined) return undefined;
    const own = { begin: begin - segment.begin, end: end - segment.begin };
    return { tensor: segment.tensor, ...own, bytes: cut(segment.bytes, own, this.width) };
  }

  #gather(piece: Part, bytes: Uint8Array): void {
    for (const [own, there] of this.#overlaps(piece, bytes)) there.set(own);
  }

  #scatter(piece: Part, bytes: Uint8Array): void {
    for (const [own, there] of this.#overlaps(piece, bytes)) own.set(there);
  }

  /** Of each tensor that a piece reaches into its bytes there, and where those are among the piece's. */
  *#overlaps(piece: Part, bytes: Uint8Array): Generator<[own: Uint8Array, there: Uint8Array]> {
    for (const segment of this.#segments) {
      const [begin, end] = [Math.max(piece.begin, segment.begin), Math.min(piece.end, segment.end)];
      if (begin >= end) continue;
      const of = (from: Part, all: Uint8Array) =>
        cut(all, { begin: begin - from.begin, end: end - from.begin }, this.width);
      yield [of(segment, segment.bytes), of(piece, bytes)];
    }
  }
}

const cut = (bytes: Uint8Array, { begin, end }: Part, width: number) => bytes.subarray(begin * width, end * width);
