/** Folders of safetensors that `HuggingFaceStorageWriter` (PyTorch DCP) wrote: each entry says where in its tensor it begins. */

import { OptError } from "@opt/core";
import type { SafetensorsEntry } from "../../format/safetensors";
import type { FormatReader, Json, SourceBox, SourceTensor } from "../../format/source";
import { sameBox } from "../../layout/box";
import { join } from "../../stores/path";
import { boxOf } from "../bytes/foreign-tensor";
import { isObject, parseJson } from "../bytes/json";
import { comparedBox } from "../bytes/replicas";
import { partOf } from "../bytes/source";
import { openSafetensors, reasons, saidValues, withPool } from "./read";

const SHARDING = "DCP_SHARDING_INFO";

export const safetensorsShardsReader: FormatReader = {
  format: "safetensors shards",
  async open(path, fileSystem) {
    return withPool(fileSystem, this.format, path, async (pool) => {
      const parts = new Map<string, SourceTensor & { boxes: SourceBox[]; shape: number[] }>();
      const values: Record<string, Json> = {};
      const unreadable = new Map<string, string>();
      const files = (await fileSystem.list(path))
        .map(({ name }) => name)
        .filter((name) => name.endsWith(".safetensors"));
      refuseUncommitted(files, path);
      for (const file of files.sort()) {
        const { source, header } = await openSafetensors(pool, join(path, file));
        const { [SHARDING]: sharding, DCP_VERSION: _, ...metadata } = header.metadata;
        Object.assign(values, saidValues(metadata));
        for (const [name, reason] of reasons(header)) unreadable.set(name, reason);
        const offsets = readOffsets(sharding, join(path, file));
        for (const entry of header.entries) {
          const { name, dtype, shape } = entry;
          const offset = offsets.get(name) ?? shape.map(() => 0);
          const part = { dtype, shape, bytes: partOf(source, entry.begin, entry.end - entry.begin) };
          addBox(parts, entry, boxOf(part, file, offset), join(path, file));
        }
      }
      return { tensors: [...parts.values()], values, unreadable };
    });
  },
};

/** Shards of ours without their manifest are a save that did not end: how far its tensors reach nobody knows. */
function refuseUncommitted(files: readonly string[], path: string): void {
  if (!files.some((file) => /^rank-\d{5,}(-[0-9a-f]{12})?\.safetensors$/.test(file))) return;
  throw new OptError(
    "MISSING",
    path,
    "manifest.json is not there, so that this step was never saved whole.",
    "Use another step, or open one of its files by itself.",
  );
}

/** A tensor reaches as far as its boxes do: whether they fill it is the planner's to say. */
function addBox(
  parts: Map<string, SourceTensor & { boxes: SourceBox[]; shape: number[] }>,
  { name, dtype }: SafetensorsEntry,
  box: SourceBox,
  where: string,
): void {
  const reach = box.size.map((length, d) => box.offset[d]! + length);
  const known = parts.get(name);
  if (known === undefined) {
    parts.set(name, { name, dtype, shape: reach, boxes: [box] });
    return;
  }
  if (known.dtype !== dtype || known.shape.length !== reach.length) {
    throw new OptError(
      "BAD_STATE",
      where,
      `a part of ${JSON.stringify(name)} is ${dtype} [${box.size}], another is ${known.dtype} [${known.boxes[0]!.size}].`,
      "The files are of different runs.",
    );
  }
  const same = known.boxes.findIndex((one) => sameBox(one, box));
  if (same >= 0) {
    known.boxes[same] = comparedBox(known.boxes[same]!, [box], () => {
      const problem = `${known.boxes[same]!.file} and ${box.file} hold ${JSON.stringify(name)} at the same place with different bytes.`;
      return new OptError(
        "BAD_STATE",
        where,
        problem,
        "The ranks have drifted apart, or the files are of different runs.",
      );
    });
    return;
  }
  known.boxes.push(box);
  for (const [d, end] of reach.entries()) known.shape[d] = Math.max(known.shape[d]!, end);
}

/** `{ name: { saved_offsets: [...] } }`; a file without it holds whole tensors. */
function readOffsets(text: string | undefined, where: string): Map<string, number[]> {
  const offsets = new Map<string, number[]>();
  if (text === undefined) return offsets;
  for (const [name, info] of Object.entries(parseJson(new TextEncoder().encode(text), where))) {
    const saved = isObject(info) ? info.saved_offsets : undefined;
    if (!Array.isArray(saved) || !saved.every((n): n is number => Number.isSafeInteger(n) && (n as number) >= 0)) {
      throw new OptError("CORRUPT", where, `${SHARDING} of ${JSON.stringify(name)} is no list.`, "Use an intact copy.");
    }
    offsets.set(name, saved);
  }
  return offsets;
}
