/** TF.js: `model.json` lists the weights in the order in which they lie, end to end, in its `.bin` files. */
import { bytesOf, type StoredDType } from "../../format/dtype";
import { type Json, readWhole, type SourceTensor } from "../../format/source";
import { elementCount } from "../../layout/box";
import { isCount } from "../../layout/counts";
import { basename, dirname, join } from "../../stores/path";
import { corrupt, unsupported } from "../bytes/errors";
import { wholeTensor } from "../bytes/foreign-tensor";
import { isObject, parseJson } from "../bytes/json";
import { formatReader } from "../bytes/reader";
import { insideOf } from "../bytes/safe-path";
import { joined, partOf } from "../bytes/source";

const LARGEST_MODEL = 256 * 1024 * 1024;
const DTYPES: Record<string, StoredDType> = {
  float32: "F32",
  int32: "I32",
  bool: "BOOL",
  uint8: "U8",
  complex64: "C64",
};

export const tfjsReader = formatReader("TF.js", async ({ path, fileSystem, file }) => {
  const model = path.endsWith(".json") ? path : join(path, "model.json");
  const { weightsManifest: groups, ...values } = parseJson(await readWhole(fileSystem, model, LARGEST_MODEL), model);
  // Any JSON is taken for a model until it is read.
  if (groups === undefined) {
    const problem =
      "it is JSON, and no checkpoint: of single JSON files TF.js' model.json is one, with a weightsManifest";
    const files = ".safetensors, .pt, .ckpt, .keras, .h5, .pdparams";
    throw unsupported(model, problem, `Give the folder of a run or of a step, or a file of weights: ${files}.`);
  }
  if (!Array.isArray(groups)) throw damaged(model, "weightsManifest is no list");
  const tensors: SourceTensor[] = [];
  for (const group of groups) {
    if (!isObject(group) || !Array.isArray(group.paths) || !Array.isArray(group.weights)) {
      throw damaged(model, "a group of weights has no paths or no weights");
    }
    const { paths } = group;
    const files = paths.map((name) => file(insideOf(dirname(model), name, model)));
    const bytes = joined(model, await Promise.all(files));
    const held = paths.length === 1 ? String(paths[0]) : basename(model);
    let begin = 0;
    for (const weight of group.weights) {
      const { name, dtype, shape } = readWeight(weight, model);
      const byteLength = bytesOf({ dtype, shape });
      tensors.push(wholeTensor(name, { dtype, shape, bytes: partOf(bytes, begin, byteLength) }, held));
      begin += byteLength;
    }
    if (begin !== bytes.byteLength) throw damaged(model, `weights fill ${begin} of ${bytes.byteLength} bytes`);
  }
  return { tensors, values: values as Record<string, Json> };
});

function readWeight(weight: Json, path: string): { name: string; dtype: StoredDType; shape: number[] } {
  const { name, dtype, shape, quantization } = isObject(weight) ? weight : ({} as Record<string, Json>);
  const known = typeof dtype === "string" && Object.hasOwn(DTYPES, dtype) ? DTYPES[dtype] : undefined;
  if (known === undefined || quantization !== undefined) {
    throw unsupported(path, `${JSON.stringify(name)} is ${quantization === undefined ? String(dtype) : "quantized"}`);
  }
  if (typeof name !== "string" || !Array.isArray(shape) || !shape.every(isCount) || elementCount(shape) === undefined) {
    throw damaged(path, "a weight has no name or no shape");
  }
  return { name, dtype: known, shape };
}

const damaged = (path: string, problem: string) => corrupt(path, problem, "The model is damaged, or no TF.js model.");
