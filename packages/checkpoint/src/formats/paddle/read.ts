/** Paddle `.pdparams` and `.pdopt`: a pickle of a dict of NumPy arrays; protocols 2 and 3 cut big ones into parts. */

import { OptError } from "@opt/core";
import { type FormatReader, type Json, openRandomAccess, type TensorSource } from "../../format/source";
import { basename } from "../../stores/path";
import { byName, type ForeignTensor, wholeTensor } from "../bytes/foreign-tensor";
import { joined, wholeFile } from "../bytes/source";
import { PADDLE_NAMES } from "../names/state-words";
import { NUMPY_GLOBALS, numpyArray } from "../python/numpy-array";
import { readPickleOf } from "../python/pickle";
import { pickleMemory } from "../python/pickle-stack";
import { childrenOf, nameTree, PLAIN_GLOBALS } from "../python/values";
import { counts } from "../torch/tensors";

const PARTS = "UnpackBigParamInfor@@";
const GLOBALS = { globals: new Set([...PLAIN_GLOBALS, ...NUMPY_GLOBALS]) };

export const paddleReader: FormatReader = {
  format: "Paddle",
  async open(path, fileSystem, options = {}): Promise<TensorSource> {
    const file = await openRandomAccess(fileSystem, path);
    try {
      const source = wholeFile(file);
      const root = await readPickleOf(source, { ...GLOBALS, ...pickleMemory(options) });
      if (!(root instanceof Map)) throw damaged(path, "the pickle holds no dict");
      const parts = root.get(PARTS);
      root.delete(PARTS);
      // Names in these two tables may hold dots and must not be taken apart.
      const structured = root.get(PADDLE_NAMES);
      root.delete(PADDLE_NAMES);
      const tree = await nameTree(root, source, (value) => numpyArray(value, source), options);
      joinParts(tree.tensors, parts, path);
      const tensors = [...tree.tensors].map(([name, tensor]) => wholeTensor(name, tensor, basename(path)));
      const values =
        structured instanceof Map ? { ...tree.values, [PADDLE_NAMES]: plainNames(structured) } : tree.values;
      return {
        format: this.format,
        path,
        tensors: byName(tensors, path),
        values,
        unreadable: tree.unreadable,
        close: () => file.close(),
      };
    } catch (error) {
      await file.close();
      throw error;
    }
  },
};

function plainNames(table: Map<unknown, unknown>): Json {
  return Object.fromEntries([...table].map(([key, value]) => [String(key), String(value)]));
}

/** Puts tensors that were cut (`name@@.0`, `name@@.1`, ...) together again under their own name and shape. */
function joinParts(tensors: Map<string, ForeignTensor>, table: unknown, path: string): void {
  for (const [name, info] of childrenOf(table) ?? []) {
    if (typeof name !== "string" || !(info instanceof Map)) throw damaged(path, "the table of parts is not readable");
    const slices = [...(childrenOf(info.get("slices")) ?? [])].map(([, slice]) => String(slice));
    const pieces = slices.map((slice) => {
      const piece = tensors.get(slice);
      if (piece === undefined) {
        throw new OptError("MISSING", path, `part ${JSON.stringify(slice)} is not there.`, "Use an intact copy.");
      }
      return piece;
    });
    const [first] = pieces;
    if (first === undefined || pieces.some((piece) => piece.dtype !== first.dtype) || tensors.has(name)) {
      throw damaged(path, `the parts of ${JSON.stringify(name)} do not fit each other`);
    }
    const shape = counts(info.get("OriginShape"), path);
    tensors.set(name, {
      dtype: first.dtype,
      shape,
      bytes: joined(
        path,
        pieces.map((piece) => piece.bytes),
      ),
    });
    for (const slice of slices) tensors.delete(slice);
  }
}

function damaged(path: string, problem: string): OptError {
  return new OptError("CORRUPT", path, `${problem}.`, "The file is damaged, or was not written by paddle.save.");
}
