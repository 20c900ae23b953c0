/** Our own checkpoints as a TensorSource. */

import { MANIFEST_FILE, type Manifest, type ManifestBox, type ManifestTensor, readManifest } from "../format/manifest";
import {
  type Candidate,
  LazyTensor,
  pooled,
  type ReadLimits,
  type SourceTensor,
  StoredBox,
  type TensorSource,
} from "../format/source";
import { type Best, findStep } from "../format/steps";
import { FilePool } from "../stores/file-pool";
import type { FileSystem, FolderEntry, StoredFile } from "../stores/file-system";
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
  const files = manifest.files.map(({ name }) => ({ name, ...pooled(pool, join(path, name)) }));
  const tensors = new Map<string, SourceTensor>();
  for (const tensor of manifest.tensors) tensors.set(tensor.name, nativeTensor(tensor, files));
  const { values } = manifest;
  return { format: "Opt checkpoint", path, step: manifest.step, manifest, tensors, values, close: () => pool.close() };
}

type NamedFile = StoredFile & { readonly name: string };

function nativeTensor(tensor: ManifestTensor, files: readonly NamedFile[]): SourceTensor {
  const boxOf = ({ offset, size, file, byteOffset, byteLength, crc32 }: ManifestBox) =>
    new StoredBox(offset, size, files[file]!.name, byteOffset, byteLength, crc32, files[file]!);
  return new LazyTensor(tensor, () => tensor.boxes.map(boxOf));
}

/** A folder with nothing in it is a run that has saved nothing yet. */
export function isCheckpoint({ kind, entries }: Candidate): boolean {
  const isOurs = (entry: FolderEntry) =>
    (entry.name === MANIFEST_FILE && entry.kind === "file") || /^step-\d{8,}/.test(entry.name);
  return kind === "folder" && (entries.length === 0 || entries.some(isOurs));
}
