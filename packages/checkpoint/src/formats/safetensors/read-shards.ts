/** Folders of safetensors that `HuggingFaceStorageWriter` (PyTorch DCP) wrote: each entry says where in its tensor it begins. */
import type { SourceBox, SourceTensor } from "../../format/source";
import { sameBox } from "../../layout/box";
import { isCount } from "../../layout/counts";
import { join } from "../../stores/path";
import { badState, corrupt, missing } from "../bytes/errors";
import { boxOf } from "../bytes/foreign-tensor";
import { isObject, parseJson } from "../bytes/json";
import { formatReader } from "../bytes/reader";
import { comparedBox } from "../bytes/replicas";
import { readSafetensors } from "./read";
import { Said } from "./said";

const SHARDING = "DCP_SHARDING_INFO";

type GatheredTensor = SourceTensor & { boxes: SourceBox[]; shape: number[] };

export const safetensorsShardsReader = formatReader("safetensors shards", async ({ path, fileSystem, file }) => {
  const parts = new Map<string, GatheredTensor>();
  const unreadable = new Map<string, string>();
  const said = new Said();
  const names = (await fileSystem.list(path)).map(({ name }) => name).filter((name) => name.endsWith(".safetensors"));
  // Shards of ours without their manifest are a save that did not end: how far its tensors reach nobody knows.
  if (names.some((name) => /^rank-\d{5,}(-[0-9a-f]{12})?\.safetensors$/.test(name))) {
    const problem = "manifest.json is not there, so that this step was never saved whole";
    throw missing(path, problem, "Use another step, or open one of its files by itself.");
  }
  for (const name of names.sort()) {
    const where = join(path, name);
    const read = await readSafetensors(await file(where));
    const { [SHARDING]: sharding, DCP_VERSION: _, ...metadata } = read.metadata;
    said.add(metadata);
    for (const [key, reason] of read.unreadable) unreadable.set(key, reason);
    const offsets = readOffsets(sharding, where);
    for (const [key, part] of read.tensors) {
      const offset = offsets.get(key) ?? part.shape.map(() => 0);
      addBox(parts, { ...part, name: key }, boxOf(part, name, offset), where);
    }
  }
  const tensors = [...parts.values()].map((tensor) => said.described(tensor));
  return { tensors, step: said.step, values: said.values, unreadable };
});

/** A tensor reaches as far as its boxes do: whether they fill it is the planner's to say. */
function addBox(
  parts: Map<string, GatheredTensor>,
  { name, dtype }: Pick<SourceTensor, "name" | "dtype">,
  box: SourceBox,
  where: string,
): void {
  const reach = box.size.map((length, d) => box.offset[d]! + length);
  if (box.offset.length !== reach.length || !reach.every(isCount))
    throw corrupt(where, `a part [${box.size}] of ${JSON.stringify(name)} cannot be at [${box.offset}]`);
  const known = parts.get(name);
  if (known === undefined) {
    parts.set(name, { name, dtype, shape: reach, boxes: [box] });
    return;
  }
  const [text, first] = [JSON.stringify(name), known.boxes[0]!];
  if (known.dtype !== dtype || known.shape.length !== reach.length) {
    throw badState(where, `a part of ${text} is ${dtype} [${box.size}], another is ${known.dtype} [${first.size}]`);
  }
  const same = known.boxes.findIndex((one) => sameBox(one, box));
  if (same >= 0) {
    const held = known.boxes[same]!;
    const problem = `${held.file} and ${box.file} hold ${text} at the same place with different bytes`;
    const advice = "The ranks have drifted apart, or the files are of different runs.";
    known.boxes[same] = comparedBox(held, [box], () => badState(where, problem, advice));
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
    const isList = Array.isArray(saved) && saved.every(isCount);
    if (!isList) throw corrupt(where, `${SHARDING} of ${JSON.stringify(name)} is no list`);
    offsets.set(name, saved as number[]);
  }
  return offsets;
}
