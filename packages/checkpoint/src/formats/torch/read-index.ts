/** PyTorch files that Hugging Face's libraries split by tensor: `pytorch_model.bin.index.json` says which file holds which. */

import { OptError } from "@opt/core";
import type { FormatReader, SourceTensor } from "../../format/source";
import { dirname } from "../../stores/path";
import { wholeTensor } from "../bytes/foreign-tensor";
import { insideOf } from "../bytes/safe-path";
import { pooledFile } from "../bytes/source";
import { readIndex } from "../safetensors/index-file";
import { withPool } from "../safetensors/read";
import { readTorch } from "./read";

const INDEX = ".bin.index.json";

export const binIndexReader: FormatReader = {
  format: "sharded PyTorch",
  async open(path, fileSystem, options = {}) {
    const { index, metadata, names } = await readIndex(path, INDEX, fileSystem);
    return withPool(fileSystem, this.format, path, async (pool) => {
      const tensors: SourceTensor[] = [];
      const unreadable = new Map<string, string>();
      for (const file of new Set(names.map(([, held]) => held))) {
        const stored = await readTorch(await pooledFile(pool, insideOf(dirname(index), file, index)), options);
        for (const [name] of names.filter(([, held]) => held === file)) {
          const tensor = stored.tensors.get(name);
          const reason = stored.unreadable.get(name);
          if (reason !== undefined) unreadable.set(name, reason);
          else if (tensor !== undefined) tensors.push(wholeTensor(name, tensor, file));
          else
            throw new OptError(
              "MISSING",
              index,
              `${file} does not hold ${JSON.stringify(name)}.`,
              "Copy the set again.",
            );
        }
      }
      return { tensors, values: metadata, unreadable };
    });
  },
};
