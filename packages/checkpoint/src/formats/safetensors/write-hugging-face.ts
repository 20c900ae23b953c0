/** Writes a set as Hugging Face's libraries split it: `model-00001-of-00003.safetensors` and so on, and the index that says what is where. */

import { check } from "@opt/core";
import { bytesOf } from "../../format/dtype";
import type { SourceTensor, TensorSource } from "../../format/source";
import { Verification } from "../../format/verification";
import { type MergeOptions, mergeSource } from "../../read/merge";
import { selectTensors } from "../../read/select";
import { writeBytes } from "../../stores/file-system";
import { join } from "../../stores/path";
import { writeFolder } from "../bytes/write-whole";

export interface HuggingFaceOptions extends MergeOptions {
  /** Most bytes of tensors in one file; a larger tensor has one of its own. */
  readonly maxShardSize: number;
  readonly overwrite?: boolean;
}

/** Writes `source` into a folder that appears complete or not at all. Throws BAD_ARGUMENT, MISSING for gaps, CORRUPT, UNSUPPORTED, IO. */
export async function writeHuggingFace(
  source: TensorSource,
  folder: string,
  options: HuggingFaceOptions,
): Promise<{ tensors: number; unverified: readonly string[] }> {
  const { maxShardSize, progress } = options;
  const problem = () => `maxShardSize must be a positive whole number of bytes, got ${maxShardSize}.`;
  const isSize = Number.isSafeInteger(maxShardSize) && maxShardSize > 0;
  check(isSize, "BAD_ARGUMENT", "convertCheckpoint", problem, "For example 5e9.");
  const selected = selectTensors(source, options, new Verification());
  const shards = shardsOf(selected, maxShardSize);
  const total = selected.reduce((sum, tensor) => sum + bytesOf(tensor), 0);
  const unverified: string[] = [];
  const { progress: __, ...settings } = options;
  await writeFolder(folder, settings, async (temporary, fileSystem) => {
    const weightMap: [string, string][] = [];
    let done = 0;
    for (const [i, shard] of shards.entries()) {
      const number = (n: number): string => String(n).padStart(5, "0");
      const one = shards.length === 1;
      const file = one ? "model.safetensors" : `model-${number(i + 1)}-of-${number(shards.length)}.safetensors`;
      const before = done;
      const part: TensorSource = {
        ...source,
        unreadable: new Map(),
        tensors: new Map(shard.map(({ name }) => [name, source.tensors.get(name)!])),
      };
      const { names: _, ...rest } = settings;
      const merged = await mergeSource(part, join(temporary, file), {
        ...rest,
        fileSystem,
        ...(progress === undefined ? {} : { progress: ({ bytes }) => progress({ bytes: before + bytes, total }) }),
      });
      unverified.push(...merged.unverified);
      for (const { name } of shard) weightMap.push([name, file]);
      done += shard.reduce((sum, tensor) => sum + bytesOf(tensor), 0);
    }
    if (shards.length === 1) return;
    const index = { metadata: { total_size: total }, weight_map: Object.fromEntries(weightMap) };
    const text = new TextEncoder().encode(`${JSON.stringify(index, null, 2)}\n`);
    await writeBytes(fileSystem, join(temporary, "model.safetensors.index.json"), text);
  });
  return { tensors: selected.length, unverified };
}

/** Tensors in their order, a new file where the next would make one too large. */
function shardsOf(tensors: readonly SourceTensor[], most: number): SourceTensor[][] {
  const shards: SourceTensor[][] = [[]];
  let size = 0;
  for (const tensor of tensors) {
    const bytes = bytesOf(tensor);
    if (size + bytes > most && shards.at(-1)!.length > 0) {
      shards.push([]);
      size = 0;
    }
    shards.at(-1)!.push(tensor);
    size += bytes;
  }
  return shards;
}
