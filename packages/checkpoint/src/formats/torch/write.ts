/** Writes PyTorch `.pt` files: what `torch.load` gives is `{ model, optimizer, ... }`, or what was read from a PyTorch file before. */

import type { TensorSource } from "../../format/source";
import { wholeOf } from "../../layout/box";
import { streamTensors } from "../../read/stream";
import { SequenceWriter } from "../bytes/write-sequence";
import { type ExportOptions, writeWhole } from "../bytes/write-whole";
import { zipParts } from "../zip/write";
import { torchArchive } from "./write-object";
import { torchObject } from "./write-state-dict";

/**
 * Writes every tensor and value of `source` into one file, which appears complete or not at all. Only plain values and tensors get into
 * it: `torch.load(path, weights_only=True)` takes it. Throws UNSUPPORTED for values that have no plain form, MISSING for gaps, IO.
 */
export async function writeTorch(
  source: TensorSource,
  path: string,
  options: ExportOptions = {},
): Promise<{ byteLength: number }> {
  const { tree, tensors } = await torchObject(source, "numbered");
  const { members, tensors: names } = torchArchive(tree, (name) => tensors.get(name)!, path);
  return writeWhole(path, options, async (file) => {
    const writer = new SequenceWriter(file);
    writer.announce(...zipParts(members));
    const write = (bytes: Uint8Array): Promise<void> => writer.write(bytes);
    await streamTensors(
      names.map((name) => {
        const tensor = tensors.get(name)!;
        return { tensor, targets: [{ box: wholeOf(tensor.shape), write }] };
      }),
      options,
    );
    return writer.finish();
  });
}
