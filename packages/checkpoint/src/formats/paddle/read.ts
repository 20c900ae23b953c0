/** Paddle `.pdparams` and `.pdopt`: a pickle of a dict of NumPy arrays; protocols 2 and 3 cut big ones into parts. */
import { corrupt, missing } from "../bytes/errors";
import { type ForeignTensor, wholeTensors } from "../bytes/foreign-tensor";
import { formatReader } from "../bytes/reader";
import { joined } from "../bytes/source";
import { PADDLE_NAMES } from "../names/states";
import { childrenOf } from "../python/containers";
import { NUMPY_GLOBALS, numpyArray } from "../python/numpy-array";
import { readPickleOf } from "../python/pickle";
import { nameTree, PLAIN_GLOBALS } from "../python/values";
import { counts } from "../torch/tensors";

const PARTS = "UnpackBigParamInfor@@";
const GLOBALS = { globals: new Set([...PLAIN_GLOBALS, ...NUMPY_GLOBALS]) };

export const paddleReader = formatReader("Paddle", async ({ path, file }) => {
  const source = await file();
  const root = await readPickleOf(source, GLOBALS);
  if (!(root instanceof Map)) throw damaged(path, "the pickle holds no dict");
  const parts = root.get(PARTS);
  root.delete(PARTS);
  // Names in these two tables may hold dots and must not be taken apart.
  const structured = root.get(PADDLE_NAMES);
  root.delete(PADDLE_NAMES);
  const { tensors, values, unreadable, skipped } = await nameTree(root, source, (value) => numpyArray(value, source));
  joinParts(tensors, parts, path);
  if (structured instanceof Map) {
    values[PADDLE_NAMES] = Object.fromEntries([...structured].map(([key, value]) => [String(key), String(value)]));
  }
  return { tensors: wholeTensors(tensors, path), values, unreadable, skipped };
});

/** Puts tensors that were cut (`name@@.0`, `name@@.1`, ...) together again under their own name and shape. */
function joinParts(tensors: Map<string, ForeignTensor>, table: unknown, path: string): void {
  for (const [name, info] of childrenOf(table) ?? []) {
    if (typeof name !== "string" || !(info instanceof Map)) throw damaged(path, "the table of parts is not readable");
    const slices = [...(childrenOf(info.get("slices")) ?? [])].map(([, slice]) => String(slice));
    const pieces = slices.map((slice) => {
      const piece = tensors.get(slice);
      if (piece === undefined) throw missing(path, `part ${JSON.stringify(slice)} is not there`);
      return piece;
    });
    const [first] = pieces;
    if (first === undefined || pieces.some((piece) => piece.dtype !== first.dtype) || tensors.has(name)) {
      throw damaged(path, `the parts of ${JSON.stringify(name)} do not fit each other`);
    }
    const bytes = pieces.map((piece) => piece.bytes);
    const shape = counts(info.get("OriginShape"), path);
    tensors.set(name, { dtype: first.dtype, shape, bytes: joined(path, bytes) });
    for (const slice of slices) tensors.delete(slice);
  }
}

const damaged = (path: string, problem: string) =>
  corrupt(path, problem, "The file is damaged, or was not written by paddle.save.");
