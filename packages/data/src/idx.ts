/** The idx files of MNIST and its relatives (LeCun, Cortes & Burges). */
import { check, show } from "@opt/core";
import type { HostArray } from "./tensor-dataset";

/**
 * An idx file of bytes: 0, 0, type 8, the number of axes, each extent as 32 bits (big-endian), the data, which is not copied.
 *
 * @throws OptError CORRUPT; BAD_ARGUMENT for what is no Uint8Array
 * @example
 * parseIdx(Uint8Array.of(0, 0, 8, 1, 0, 0, 0, 2, 7, 9)); // { shape: [2], data: Uint8Array [7, 9] }
 */
export function parseIdx(file: Uint8Array): HostArray & { readonly data: Uint8Array; readonly shape: number[] } {
  const where = "parseIdx";
  const isBytes = file instanceof Uint8Array;
  check(
    isBytes,
    "BAD_ARGUMENT",
    where,
    () => `needs the bytes of a file, got ${show(file)}.`,
    "For example readFileSync(path).",
  );
  const first = [...file.subarray(0, 4)];
  const [zero, alsoZero, type, axes = 0] = first;
  const isIdx = zero === 0 && alsoZero === 0 && type === 8 && file.length >= 4 + 4 * axes;
  check(
    isIdx,
    "CORRUPT",
    where,
    () => `the file must be an idx file of bytes, got one that begins with ${first.join(" ")}.`,
    "Unpack it first, if its name ends with .gz.",
  );
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const shape = Array.from({ length: axes }, (_, axis) => view.getUint32(4 + 4 * axis));
  const size = shape.reduce((product, extent) => product * extent, 1);
  // Not file.subarray: a view of a Buffer is a Buffer, whose own views are slow to make.
  const data = new Uint8Array(file.buffer, file.byteOffset + 4 + 4 * axes, file.length - 4 - 4 * axes);
  const isWhole = data.length === size;
  check(isWhole, "CORRUPT", where, () => `shape [${shape}] needs ${size} bytes, got ${data.length}.`, "Load it again.");
  return { shape, data };
}
