/** Our own checkpoints as a TensorSource. */

import { check } from "@opt/core";
import {
  MANIFEST_FILE,
  MAX_MANIFEST_BYTES,
  type Manifest,
  type ManifestBox,
  type ManifestTensor,
  parseManifest,
} from "../format/manifest";
import {
  filling,
  type Importer,
  LazyTensor,
  openRandomAccess,
  type ReadLimits,
  readWhole,
  type SourceTensor,
  StoredBox,
  type TensorSource,
} from "../format/source";
import { findStep } from "../format/steps";
import { FilePool } from "../stores/file-pool";
import type { FileSystem, StoredFile } from "../stores/file-system";
import { join } from "../stores/path";

export interface NativeSource extends TensorSource {
  readonly step: number;
  readonly manifest: Manifest;
}

/** A manifest up to here is read whatever the shards' sizes. */
const SMALL_MANIFEST = 16 << 20;

/** Reads and checks a step's manifest. Throws MISSING, CORRUPT, UNSUPPORTED, IO, REFUSED for one out of all proportion to its files. */
export async function readManifest(fileSystem: FileSystem, folder: string, limits: ReadLimits = {}): Promise<Manifest> {
  const path = join(folder, MANIFEST_FILE);
  const file = await openRandomAccess(fileSystem, path);
  await file.close();
  const limit = limits.maxHeaderBytes ?? (await usualManifest(fileSystem, folder, file.byteLength));
  const problem = () => `a manifest of ${file.byteLength} bytes could fill the memory.`;
  check(file.byteLength <= limit, "REFUSED", path, problem, "If it is to be trusted, raise maxHeaderBytes.");
  return parseManifest(await readWhole(fileSystem, path, MAX_MANIFEST_BYTES), path);
}

/** A box takes a few times more in the manifest than in the header of its file. */
async function usualManifest(fileSystem: FileSystem, folder: string, byteLength: number): Promise<number> {
  if (byteLength <= SMALL_MANIFEST) return SMALL_MANIFEST;
  let total = 0;
  for (const { name } of await fileSystem.list(folder)) {
    if (!name.endsWith(".safetensors")) continue;
    const file = await openRandomAccess(fileSystem, join(folder, name));
    await file.close();
    total += file.byteLength;
  }
  return SMALL_MANIFEST + 4 * total;
}

/** Opens a step folder, or the latest (or the given) step of a run's folder. Throws MISSING, CORRUPT, REFUSED, UNSUPPORTED, IO. */
export async function openCheckpoint(
  folder: string,
  fileSystem: FileSystem,
  step?: number,
  limits?: ReadLimits,
): Promise<NativeSource> {
  return openStep(await findStep(fileSystem, folder, step), fileSystem, limits);
}

/** Opens the folder of a step. Throws MISSING, CORRUPT, REFUSED, UNSUPPORTED, IO. */
export async function openStep(path: string, fileSystem: FileSystem, limits?: ReadLimits): Promise<NativeSource> {
  const manifest = await readManifest(fileSystem, path, limits);
  const pool = new FilePool(fileSystem, "read");
  const files = manifest.files.map(({ name }) => {
    const file = join(path, name);
    return { name, ...filling(file, (...range) => pool.use(file, (open) => open.read(...range))) };
  });
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

export const checkpointImporter: Importer = {
  format: "Opt checkpoint",
  // A folder with nothing in it is a run that has saved nothing yet.
  recognises: ({ kind, entries }) =>
    kind === "folder" &&
    (entries.length === 0 ||
      entries.some(
        (entry) => (entry.name === MANIFEST_FILE && entry.kind === "file") || /^step-\d{8,}/.test(entry.name),
      )),
  open: (path, fileSystem) => openCheckpoint(path, fileSystem),
};
