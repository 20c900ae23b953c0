/** TF.js: `model.json` lists the weights in the order in which they lie, end to end, in its `.bin` files. */

import { OptError } from "@opt/core";
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import { type FormatReader, type Json, readWhole, type SourceTensor } from "../../format/source";
import { elementCount } from "../../layout/box";
import { basename, dirname, join } from "../../stores/path";
import { wholeTensor } from "../bytes/foreign-tensor";
import { isObject, parseJson } from "../bytes/json";
import { insideOf } from "../bytes/safe-path";
import { joined, partOf, pooledFile } from "../bytes/source";
import { withPool } from "../safetensors/read";

const LARGEST_MODEL = 256 * 1024 * 1024;
const DTYPES: Record<string, StoredDType> = {
  float32: "F32",
  int32: "I32",
  bool: "BOOL",
  uint8: "U8",
  complex64: "C64",
};

export const tfjsReader: FormatReader = {
  format: "TF.js",
  async open(path, fileSystem) {
    const model = path.endsWith(".json") ? path : join(path, "model.json");
    return withPool(fileSystem, this.format, path, async (pool) => {
      const root = parseJson(await readWhole(fileSystem, model, LARGEST_MODEL), model);
      if (root.weightsManifest === undefined) throw notTfjs(model);
      if (!Array.isArray(root.weightsManifest)) throw corrupt(model, "weightsManifest is no list");
      const tensors: SourceTensor[] = [];
      for (const group of root.weightsManifest) {
        if (!isObject(group) || !Array.isArray(group.paths) || !Array.isArray(group.weights)) {
          throw corrupt(model, "a group of weights has no paths or no weights");
        }
        const paths = group.paths.map((file) => insideOf(dirname(model), file, model));
        const bytes = joined(model, await Promise.all(paths.map((file) => pooledFile(pool, file))));
        let begin = 0;
        for (const weight of group.weights) {
          const { name, dtype, shape } = readWeight(weight, model);
          const byteLength = elementCount(shape)! * bytesPerElement(dtype);
          const file = group.paths.length === 1 ? String(group.paths[0]) : basename(model);
          tensors.push(wholeTensor(name, { dtype, shape, bytes: partOf(bytes, begin, byteLength) }, file));
          begin += byteLength;
        }
        if (begin !== bytes.byteLength) throw corrupt(model, `weights fill ${begin} of ${bytes.byteLength} bytes`);
      }
      const { weightsManifest: _, ...values } = root;
      return { tensors, values: values as Record<string, Json> };
    });
  },
};

function readWeight(weight: Json, path: string): { name: string; dtype: StoredDType; shape: number[] } {
  const { name, dtype, shape, quantization } = isObject(weight) ? weight : ({} as Record<string, Json>);
  const known = typeof dtype === "string" && Object.hasOwn(DTYPES, dtype) ? DTYPES[dtype] : undefined;
  if (known === undefined || quantization !== undefined) {
    throw new OptError(
      "UNSUPPORTED",
      path,
      `${JSON.stringify(name)} is ${quantization === undefined ? String(dtype) : "quantized"}.`,
      "Save the model with plain numbers.",
    );
  }
  const isCount = (n: Json): n is number => Number.isSafeInteger(n) && (n as number) >= 0;
  if (typeof name !== "string" || !Array.isArray(shape) || !shape.every(isCount) || elementCount(shape) === undefined) {
    throw corrupt(path, "a weight has no name or no shape");
  }
  return { name, dtype: known, shape };
}

/** Any JSON is taken for a model until it is read. */
function notTfjs(path: string): OptError {
  return new OptError(
    "UNSUPPORTED",
    path,
    "it is JSON, and no checkpoint: of single JSON files TF.js' model.json is one, with a weightsManifest.",
    "Give the folder of a run or of a step, or a file of weights: .safetensors, .pt, .ckpt, .keras, .h5, .pdparams.",
  );
}

function corrupt(path: string, problem: string): OptError {
  return new OptError("CORRUPT", path, `${problem}.`, "The model is damaged, or no TF.js model.");
}
