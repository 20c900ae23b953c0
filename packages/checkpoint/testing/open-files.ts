/** Files in memory, opened as another system's checkpoint. */
import type { TensorSource } from "../src/format/source";
import { openForeign } from "../src/formats/registry";
import { memoryFiles } from "./disks/memory-files";

/** The first of them without `name`; "" is the folder that they are in. */
export const openFiles = (files: Record<string, Uint8Array>, name = Object.keys(files)[0]!): Promise<TensorSource> =>
  openForeign(name === "" ? "/root" : `/root/${name}`, memoryFiles(files));
