/** Keras 3: `.weights.h5`, and `.keras`, a zip of the model's config and that file. */
import type { StoredDType } from "../../format/dtype";
import type { Json } from "../../format/source";
import { missing, unsupported } from "../bytes/errors";
import { wholeTensors } from "../bytes/foreign-tensor";
import { parseJson } from "../bytes/json";
import { formatReader } from "../bytes/reader";
import { type ByteSource, readBytes } from "../bytes/source";
import { openZip } from "../zip/read";
import { type Hdf5Dataset, Hdf5File } from "./hdf5";
import { isHdf5 } from "./signature";

const LARGEST_CONFIG = 64 * 1024 * 1024;

export const kerasReader = formatReader("Keras", async ({ path, file }) => {
  const source = await file();
  const { weights, values } = isHdf5(await readBytes(source, 0, Math.min(8, source.byteLength)))
    ? { weights: source, values: {} }
    : await openArchive(source);
  const hdf5 = await Hdf5File.open(weights);
  try {
    const found = (await hdf5.datasets()).map((dataset) => {
      const { name, shape, bytes } = dataset;
      return [name, { dtype: dtypeOf(dataset, path), shape, bytes }] as const;
    });
    return { tensors: wholeTensors(found, path), values, close: () => hdf5.close() };
  } catch (error) {
    await hdf5.close();
    throw error;
  }
});

/** The weights of a `.keras` archive; its config and metadata become values. */
async function openArchive(source: ByteSource): Promise<{ weights: ByteSource; values: Record<string, Json> }> {
  const members = await openZip(source);
  const weights = members.get("model.weights.h5");
  if (!weights) throw missing(source.path, "the archive has no model.weights.h5", "Save the model with Keras 3.");
  const values: Record<string, Json> = {};
  for (const name of ["config", "metadata"]) {
    const member = members.get(`${name}.json`);
    if (member === undefined || member.byteLength > LARGEST_CONFIG) continue;
    values[name] = parseJson(await readBytes(member, 0, member.byteLength), member.path) as Json;
  }
  return { weights, values };
}

const FLOATS: Record<number, StoredDType> = { 2: "F16", 4: "F32", 8: "F64" };

function dtypeOf({ name, kind, bytesPerElement: width }: Hdf5Dataset, path: string): StoredDType {
  if (kind === "bool") return "BOOL";
  const integer = `${kind === "int" ? "I" : "U"}${width * 8}` as StoredDType;
  const dtype = kind === "float" ? FLOATS[width] : [1, 2, 4, 8].includes(width) ? integer : undefined;
  if (dtype === undefined) throw unsupported(path, `${name} has numbers of ${width} bytes`, "Convert it first.");
  return dtype;
}
