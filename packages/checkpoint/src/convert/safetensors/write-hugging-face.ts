/** Writes a set as Hugging Face's libraries split it: `model-00001-of-00003.safetensors` and so on, and the index that says what is where. */

import { bytesOf } from "../../format/dtype";
import { encodeMerged } from "../../format/merged";
import { fileOrder } from "../../format/shard";
import type { SourceTensor, TensorSource } from "../../format/source";
import { Verification } from "../../format/verification";
import { wholeOf } from "../../layout/box";
import { selectTensors } from "../../read/select";
import type { MergeOptions } from "../../rewrite/merge";
import { streamFiles } from "../../rewrite/stream-files";
import { writeBytes } from "../../stores/file-system";
import { join } from "../../stores/path";
import { writeFolder } from "../files/write-whole";

export interface HuggingFaceOptions extends MergeOptions {
  /** Most bytes of tensors in one file; a larger tensor has one of its own. */
  readonly maxShardSize: number;
}

/**
 * Writes `source` into a folder that appears complete or not at all.
 *
 * @throws OptError BAD_ARGUMENT, MISSING for gaps, CORRUPT, UNSUPPORTED, IO
 */
export async function writeHuggingFace(
  source: TensorSource,
  folder: string,
  options: HuggingFaceOptions,
): Promise<{ tensors: number; unverified: readonly string[] }> {
  const verification = new Verification();
  const selected = selectTensors(source, options, verification);
  const shards = shardsOf(selected, options.maxShardSize);
  const number = (n: number): string => String(n).padStart(5, "0");
  const nameOf = (i: number): string =>
    shards.length === 1 ? "model.safetensors" : `model-${number(i + 1)}-of-${number(shards.length)}.safetensors`;
  await writeFolder(folder, { ...options, progress: undefined }, async (temporary, fileSystem) => {
    const files = shards.map((shard, i) => {
      const boxes = shard.map((tensor) => ({ tensor, box: wholeOf(tensor.shape) })).sort(fileOrder);
      return { folder: temporary, name: nameOf(i), boxes, metadata: encodeMerged(source, shard) };
    });
    await streamFiles(fileSystem, files, options);
    if (shards.length === 1) return;
    const total = selected.reduce((sum, tensor) => sum + bytesOf(tensor), 0);
    const weightMap = Object.fromEntries(shards.flatMap((shard, i) => shard.map(({ name }) => [name, nameOf(i)])));
    const index = { metadata: { total_size: total }, weight_map: weightMap };
    const text = new TextEncoder().encode(`${JSON.stringify(index, null, 2)}\n`);
    await writeBytes(fileSystem, join(temporary, "model.safetensors.index.json"), text);
  });
  const unverified = options.verify === false ? selected.map(({ name }) => name) : verification.unverified();
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
