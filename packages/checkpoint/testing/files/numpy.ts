/** Arrays as NumPy saves them, and two archives that NumPy 2.4 wrote: of the same arrays, stored and deflated. */
import { fileURLToPath } from "node:url";

/** An `.npy` of these bytes. `type`: a dtype as Python prints it. */
export function npyOf(
  type: string,
  shape: string,
  data: Uint8Array,
  { fortran = "False", version = 1 } = {},
): Uint8Array {
  const text = `{'descr': ${type}, 'fortran_order': ${fortran}, 'shape': ${shape}, }\n`;
  const length = version === 1 ? [text.length & 255, text.length >> 8] : [text.length & 255, text.length >> 8, 0, 0];
  return Buffer.concat([
    Buffer.from("\x93NUMPY", "latin1"),
    Uint8Array.of(version, 0, ...length),
    Buffer.from(text),
    data,
  ]);
}

export const npzFile = (name: "stored" | "deflated"): string =>
  fileURLToPath(new URL(`./numpy/${name}.npz`, import.meta.url));
