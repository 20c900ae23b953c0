/** Our own checkpoints as a TensorSource. */
import { join } from "node:path";
import { OptError } from "@opt/core";
import { MANIFEST_FILE, MAX_MANIFEST_BYTES, type Manifest, parseManifest } from "../format/manifest";
import { type Importer, readWhole, type SourceTensor, type TensorSource } from "../format/source";
import { findStep } from "../format/steps";
import { FilePool } from "../stores/file-pool";
import { diskError, type FileSystem } from "../stores/file-system";

export interface NativeSource extends TensorSource {
  readonly step: number;
  readonly manifest: Manifest;
}

export async function readManifest(fileSystem: FileSystem, folder: string): Promise<Manifest> {
  const path = join(folder, MANIFEST_FILE);
  return parseManifest(await readWhole(fileSystem, path, MAX_MANIFEST_BYTES), path);
}

/** Opens a step folder, or the latest (or the given) step of a run's folder. Throws MISSING, CORRUPT, REFUSED, UNSUPPORTED, IO. */
export async function openCheckpoint(folder: string, fileSystem: FileSystem, step?: number): Promise<NativeSource> {
  const path = await findStep(fileSystem, folder, step);
  const manifest = await readManifest(fileSystem, path);
  const pool = new FilePool(fileSystem, "read");
  const read = async (name: string, target: Uint8Array, position: number) => {
    const file = join(path, name);
    let count: number;
    try {
      count = await pool.use(file, (open) => open.read(target, position));
    } catch (error) {
      throw diskError(error, file, "reading");
    }
    if (count === target.length) return;
    const range = `bytes ${position} to ${position + target.length}`;
    throw new OptError(
      "CORRUPT",
      file,
      `${range} must be there, the file ends before.`,
      "It is truncated: restore it.",
    );
  };
  const tensors = new Map<string, SourceTensor>();
  for (const tensor of manifest.tensors) {
    const boxes = tensor.boxes.map((box) => {
      const { name } = manifest.files[box.file]!;
      return {
        ...box,
        file: name,
        read: (target: Uint8Array, start: number) => read(name, target, box.byteOffset + start),
      };
    });
    tensors.set(tensor.name, { ...tensor, boxes });
  }
  const { values } = manifest;
  return { format: "Opt checkpoint", path, step: manifest.step, manifest, tensors, values, close: () => pool.close() };
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
