/** Files that flax 0.12 wrote: a tree of arrays, the same in chunks of at most 100 bytes, and values of all kinds. */
import { fileURLToPath } from "node:url";

export const flaxFile = (name: "whole" | "chunked" | "values"): string =>
  fileURLToPath(new URL(`./flax/${name}.msgpack`, import.meta.url));
