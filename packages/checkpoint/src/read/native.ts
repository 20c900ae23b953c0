/** Our own checkpoints as a TensorSource. */

import { LocatedTensor } from "../format/file-index";
import { MANIFEST_FILE, type Manifest, readManifest } from "../format/manifest";
import type { ManifestBox, ManifestTensor } from "../format/shard";
import {
  type Candidate,
  LazyTensor,
  pooled,
  type ReadLimits,
  type SourceBox,
  type SourceTensor,
  StoredBox,
  type TensorSource,
} from "../format/source";
import { type Best, findStep } from "../format/steps";
import type { Box } from "../layout/box";
import { FilePool } from "../stores/file-pool";
import type { Checksum, FileSystem, FolderEntry, StoredFile } from "../stores/file-system";
import { join } from "../stores/path";

export interface NativeSource extends TensorSource {
  readonly step: number;
  readonly manifest: Manifest;
}

/**
 * Opens a step folder, or the latest, the given or the best step of a run's folder.
 *
 * @throws OptError MISSING, CORRUPT, REFUSED, UNSUPPORTED, IO
 */
export async function openCheckpoint(
  folder: string,
  fileSystem: FileSystem,
  { step, best, ...limits }: ReadLimits & { readonly step?: number; readonly best?: Best } = {},
): Promise<NativeSource> {
  const path = await findStep(fileSystem, folder, step, best);
  const manifest = await readManifest(fileSystem, path, limits);
  const pool = new FilePool(fileSystem, "read");
  const files = manifest.files.map(({ name }, file) => ({ name, ...summed(manifest, path, file, pool) }));
  const tensors = new Map<string, SourceTensor>();
  for (const tensor of manifest.tensors) tensors.set(tensor.name, nativeTensor(tensor, files));
  const { values } = manifest;
  return { format: "Opt checkpoint", path, step: manifest.step, manifest, tensors, values, close: () => pool.close() };
}

type NamedFile = StoredFile & { readonly name: string };

/** A file of the step. If the manifest does not list its boxes, their checksums are read before anything of it is. */
function summed({ index, checksums, files }: Manifest, path: string, file: number, pool: FilePool): StoredFile {
  const stored = pooled(pool, join(path, files[file]!.name));
  if (!index) return stored;
  let known: Promise<void> | undefined;
  return {
    async read(...range) {
      const where = join(path, checksums!);
      known ??= index.readChecksums(file, where, pooled(pool, where).read);
      await known;
      return stored.read(...range);
    },
  };
}

function nativeTensor(tensor: ManifestTensor, files: readonly NamedFile[]): SourceTensor {
  if (tensor instanceof LocatedTensor) {
    const box = (index: number) => new LateBox(tensor.box(index), files[tensor.division.files[index]!]!);
    const finder = { box, sourcesOf: (region: Box) => tensor.sourcesOf(region) };
    return new LazyTensor({ ...tensor, finder }, () => tensor.division.files.map((_, index) => box(index)));
  }
  const boxOf = ({ offset, size, file, byteOffset, byteLength, crc32 }: ManifestBox) =>
    new StoredBox(offset, size, files[file]!.name, byteOffset, byteLength, crc32, files[file]!);
  return new LazyTensor(tensor, () => tensor.boxes.map(boxOf));
}

/** A box whose checksum is known once something of its file was read. */
class LateBox implements SourceBox {
  readonly isSummedLater = true;
  readonly #box: ManifestBox;
  readonly #file: NamedFile;

  constructor(box: ManifestBox, file: NamedFile) {
    this.#box = box;
    this.#file = file;
  }

  get offset() {
    return this.#box.offset;
  }

  get size() {
    return this.#box.size;
  }

  get byteOffset() {
    return this.#box.byteOffset;
  }

  get byteLength() {
    return this.#box.byteLength;
  }

  get crc32() {
    return this.#box.crc32;
  }

  get file() {
    return this.#file.name;
  }

  get stored() {
    return { file: this.#file, begin: this.byteOffset };
  }

  read(target: Uint8Array, start: number, sum?: Checksum): Promise<void> {
    return this.#file.read(target, this.byteOffset + start, sum);
  }
}

/** A folder with nothing in it is a run that has saved nothing yet. */
export function isCheckpoint({ kind, entries }: Candidate): boolean {
  const isOurs = (entry: FolderEntry) =>
    (entry.name === MANIFEST_FILE && entry.kind === "file") || /^step-\d{8,}/.test(entry.name);
  return kind === "folder" && (entries.length === 0 || entries.some(isOurs));
}
