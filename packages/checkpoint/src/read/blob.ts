/** A checkpoint as one file to download, and to be loaded again from the file that the user chooses. */
import { check, checkOptions } from "@opt/core";
import { bytesPerElement } from "../format/dtype";
import { checkedValues } from "../format/json";
import type { SourceTensor, TensorSource } from "../format/source";
import { type LocalTensor, localTensors } from "../format/tensors";
import { elementsIn, wholeOf } from "../layout/box";
import type { CheckpointContents } from "../save/save";
import { memoryFileSystem } from "../stores/memory";
import { mergeSource } from "./merge";

/**
 * A safetensors file of everything that `saveCheckpoint` takes, whole; `loadCheckpoint(blob)` gives it back bit for bit. The tensors may
 * be changed when the promise has resolved. Throws BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, DUPLICATE, MISSING (boxes leave a hole).
 */
export async function checkpointBlob(contents: CheckpointContents): Promise<Blob> {
  const where = "checkpointBlob";
  checkOptions(where, contents, { step: "number", tensors: "any", values: "any" });
  const { step } = contents;
  const isStep = Number.isSafeInteger(step) && step >= 0;
  check(isStep, "BAD_ARGUMENT", where, () => `step must be a whole number from 0, got ${step}.`, "Count from 0.");
  const source: TensorSource = {
    format: "memory",
    path: where,
    step,
    tensors: new Map(localTensors(contents.tensors).map((tensor) => [tensor.name, inMemory(tensor)])),
    values: checkedValues(contents.values ?? {}),
    close: async () => {},
  };
  const fileSystem = memoryFileSystem();
  await mergeSource(source, "checkpoint.safetensors", { fileSystem });
  return fileSystem.blob("checkpoint.safetensors");
}

function inMemory(tensor: LocalTensor): SourceTensor {
  const { name, dtype, shape, role, follows } = tensor;
  const boxes = (tensor.boxes ?? [wholeOf(shape)]).map((box, index) => {
    let bytes: Uint8Array | Promise<Uint8Array> | undefined;
    return {
      ...box,
      byteLength: elementsIn(box) * bytesPerElement(dtype),
      file: "memory",
      async read(target: Uint8Array, start: number) {
        bytes ??= tensor.bytes(index);
        target.set((await bytes).subarray(start, start + target.length));
      },
    };
  });
  return { name, dtype, shape, role, ...(follows === undefined ? {} : { follows }), boxes };
}
