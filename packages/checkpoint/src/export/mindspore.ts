/** Writes MindSpore `.ckpt` files, byte for byte as MindSpore does: a message for each tensor, large ones in several. */
import { dirname } from "node:path";
import { OptError } from "@opt/core";
import { crc32 } from "../format/crc32";
import { bytesPerElement } from "../format/dtype";
import { elementCount } from "../format/safetensors";
import type { SourceTensor, TensorSource } from "../format/source";
import { LARGEST_PIECE, mindsporeType } from "../import/mindspore/format";
import { mindsporeCrcTrailer, mindsporeValueHead } from "../import/mindspore/values";
import { mindsporeName } from "../import/names/state-words";
import { wholeOf } from "../layout/box";
import { streamTensors } from "../read/stream";
import { newAttempt } from "../save/step-folder";
import { diskError, type FileSystem, nodeFileSystem, type OpenFile } from "../stores/file-system";

export interface MindsporeOptions {
  /** End the file with a checksum (`crc_check` in MindSpore). Default false. */
  readonly crc?: boolean;
  /** Most bytes of buffers, 64 MiB without it. */
  readonly maxMemory?: number;
  /** Tensors larger than this many bytes are stored in several values. Default 512 MiB, MindSpore's own. */
  readonly largestPiece?: number;
  /** Called with the bytes of each piece that was passed on. */
  readonly progress?: (bytes: number) => void;
  readonly fileSystem?: FileSystem;
}

/**
 * Writes every tensor of `source` into one `.ckpt`, whole and in the source's order; states get MindSpore's prefixes. The file
 * appears complete or not at all. Throws UNSUPPORTED for dtypes that MindSpore has not, MISSING for gaps, IO.
 */
export async function writeMindspore(
  source: TensorSource,
  path: string,
  options: MindsporeOptions = {},
): Promise<{ byteLength: number }> {
  const fileSystem: FileSystem = options.fileSystem ?? nodeFileSystem;
  const tensors = [...source.tensors.values()];
  for (const tensor of tensors) typeOf(tensor);
  const temporary = `${path}.tmp-${newAttempt()}`;
  try {
    const file = await fileSystem.open(temporary, "createNew");
    let byteLength: number;
    try {
      const writer = new MindsporeWriter(file, options.largestPiece ?? LARGEST_PIECE);
      await streamTensors(
        tensors.map((tensor) => ({
          tensor,
          targets: [{ box: wholeOf(tensor.shape), write: writer.announce(tensor) }],
        })),
        options,
      );
      byteLength = await writer.finish(options.crc ?? false);
      await file.sync();
    } finally {
      await file.close();
    }
    await fileSystem.rename(temporary, path);
    await fileSystem.syncFolder(dirname(path));
    return { byteLength };
  } catch (error) {
    await fileSystem.remove(temporary).catch(() => undefined); // the first failure is the one to tell
    throw diskError(error, path, "writing");
  }
}

/** A value's head and how many bytes of content follow it. */
interface Head {
  readonly bytes: Uint8Array;
  readonly content: number;
}

/** Appends heads and contents in the order in which the tensors were announced, taking the checksum on the way. */
class MindsporeWriter {
  readonly #file: OpenFile;
  readonly #largestPiece: number;
  readonly #heads: Head[] = [];
  #next = 0;
  #left = 0;
  #position = 0;
  #crc = 0;

  constructor(file: OpenFile, largestPiece: number) {
    this.#file = file;
    this.#largestPiece = largestPiece;
  }

  /** Puts the tensor's values into the order of the file, and takes its bytes from first to last. */
  announce(tensor: SourceTensor): (bytes: Uint8Array) => Promise<void> {
    const width = bytesPerElement(tensor.dtype);
    const count = elementCount(tensor.shape)!;
    const name = mindsporeName(tensor.name, tensor.follows);
    // Scalars have the single dim 0, which all versions of MindSpore read.
    const dims = tensor.shape.length === 0 ? [0] : tensor.shape;
    // As numpy.array_split: the first parts are one element longer where the count does not divide.
    const parts = Math.max(1, Math.ceil((count * width) / this.#largestPiece));
    for (let part = 0; part < parts; part++) {
      const content = (Math.floor(count / parts) + (part < count % parts ? 1 : 0)) * width;
      this.#heads.push({ bytes: mindsporeValueHead(name, dims, typeOf(tensor), content), content });
    }
    return (bytes) => this.#write(bytes);
  }

  async finish(crc: boolean): Promise<number> {
    await this.#passHeads();
    if (this.#left > 0 || this.#next < this.#heads.length) {
      throw new OptError("INTERNAL", "writeMindspore", "the contents did not fill the announced values.");
    }
    if (crc) await this.#append(mindsporeCrcTrailer(this.#crc));
    return this.#position;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.byteLength; ) {
      await this.#passHeads();
      const piece = bytes.subarray(done, done + this.#left);
      await this.#append(piece);
      this.#left -= piece.byteLength;
      done += piece.byteLength;
    }
  }

  /** Writes the heads up to the next value that has contents: empty tensors have none. */
  async #passHeads(): Promise<void> {
    while (this.#left === 0 && this.#next < this.#heads.length) {
      const { bytes, content } = this.#heads[this.#next++]!;
      await this.#append(bytes);
      this.#left = content;
    }
  }

  async #append(bytes: Uint8Array): Promise<void> {
    await this.#file.write(bytes, this.#position);
    this.#position += bytes.byteLength;
    this.#crc = crc32(bytes, this.#crc);
  }
}

function typeOf({ name, dtype }: SourceTensor): string {
  const type = mindsporeType(dtype);
  if (type !== undefined) return type;
  throw new OptError("UNSUPPORTED", name, `MindSpore has no ${dtype}.`, "Convert the tensor to another dtype first.");
}
