/** Keras 3: `.weights.h5`, and `.keras`, a zip of the model's config and that file. */

import { OptError } from "@opt/core";
import type { StoredDType } from "../../format/dtype";
import type { FormatReader, ImportOptions, Json } from "../../format/source";
import { FilePool } from "../../stores/file-pool";
import { basename } from "../../stores/path";
import { byName, wholeTensor } from "../bytes/foreign-tensor";
import { parseJson } from "../bytes/json";
import { type ByteSource, pooledFile, readBytes } from "../bytes/source";
import { openZip } from "../zip/read";
import { type Hdf5Dataset, Hdf5File } from "./hdf5";
import { isHdf5 } from "./signature";

const LARGEST_CONFIG = 64 * 1024 * 1024;

export const kerasReader: FormatReader = {
  format: "Keras",
  async open(path, fileSystem, options = {}) {
    const pool = new FilePool(fileSystem, "read");
    let file: Hdf5File | undefined;
    const close = async (): Promise<void> => {
      await file?.close();
      await pool.close();
    };
    try {
      const source = await pooledFile(pool, path);
      const { weights, values } = isHdf5(await readBytes(source, 0, Math.min(8, source.byteLength)))
        ? { weights: source, values: {} }
        : await openArchive(source, options);
      file = await Hdf5File.open(weights);
      const tensors = (await file.datasets(options)).map((dataset) =>
        wholeTensor(
          dataset.name,
          { dtype: dtypeOf(dataset, path), shape: dataset.shape, bytes: dataset.bytes },
          basename(path),
        ),
      );
      return { format: this.format, path, tensors: byName(tensors, path), values, close };
    } catch (error) {
      await close();
      throw error;
    }
  },
};

/** The weights of a `.keras` archive; its config and metadata become values. */
async function openArchive(
  source: ByteSource,
  options: ImportOptions,
): Promise<{ weights: ByteSource; values: Record<string, Json> }> {
  const members = await openZip(source, options);
  const weights = members.get("model.weights.h5");
  if (weights === undefined) {
    throw new OptError("MISSING", source.path, "the archive has no model.weights.h5.", "Save the model with Keras 3.");
  }
  const values: Record<string, Json> = {};
  for (const name of ["config", "metadata"]) {
    const member = members.get(`${name}.json`);
    if (member === undefined || member.byteLength > LARGEST_CONFIG) continue;
    values[name] = parseJson(await readBytes(member, 0, member.byteLength), member.path) as Json;
  }
  return { weights, values };
}

const FLOATS: Record<number, StoredDType> = { 2: "F16", 4: "F32", 8: "F64" };

function dtypeOf({ name, kind, bytesPerElement }: Hdf5Dataset, path: string): StoredDType {
  if (kind === "bool") return "BOOL";
  const integer = `${kind === "int" ? "I" : "U"}${bytesPerElement * 8}` as StoredDType;
  const dtype =
    kind === "float" ? FLOATS[bytesPerElement] : [1, 2, 4, 8].includes(bytesPerElement) ? integer : undefined;
  if (dtype !== undefined) return dtype;
  throw new OptError("UNSUPPORTED", path, `${name} has numbers of ${bytesPerElement} bytes.`, "Convert it first.");
}
