/** A reader of float32 safetensors, small enough to trust: an 8-byte header length, a JSON header, the data. */

export interface NamedArray {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/** The tensors of a file by name, in the order of its header. */
export function readSafetensors(file: Uint8Array): Map<string, NamedArray> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const headerEnd = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, headerEnd))) as Record<string, Entry>;
  const tensors = new Map<string, NamedArray>();
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    if (dtype !== "F32") throw new Error(`${name}: goldens are F32, got ${dtype}`);
    const bytes = file.slice(headerEnd + data_offsets[0], headerEnd + data_offsets[1]);
    const data = new Float32Array(bytes.buffer);
    const size = shape.reduce((product, length) => product * length, 1);
    if (data.length !== size) throw new Error(`${name}: [${shape}] needs ${size} numbers, got ${data.length}`);
    tensors.set(name, { shape, data });
  }
  return tensors;
}
