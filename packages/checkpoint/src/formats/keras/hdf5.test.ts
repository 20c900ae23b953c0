/** Files that the library itself has written: every range of every dataset. */
import h5wasm from "h5wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { memorySource, readBytes } from "../bytes/source";
import { type Hdf5Dataset, Hdf5File } from "./hdf5";

const NUMBERS = Array.from({ length: 5 * 700 * 3 }, (_, i) => (i * 7919) % 30011);
const SHAPE = [5, 700, 3];

/** An HDF5 file with these datasets. */
async function written(datasets: readonly { name: string; [option: string]: unknown }[]): Promise<Uint8Array> {
  const { FS } = await h5wasm.ready;
  const file = new h5wasm.File("written.h5", "w");
  for (const dataset of datasets) file.create_dataset(dataset as never);
  file.close();
  return FS.readFile("written.h5") as Uint8Array;
}

const DATASETS = [
  { name: "plain", data: new Float32Array(NUMBERS), shape: SHAPE },
  { name: "doubles", data: new Float64Array(NUMBERS), shape: SHAPE },
  { name: "chunked", data: new Int32Array(NUMBERS), shape: SHAPE, chunks: [2, 300, 2] },
  { name: "packed", data: new Int16Array(NUMBERS), shape: SHAPE, chunks: [2, 300, 2], compression: 5 },
  { name: "bytes", data: Uint8Array.from(NUMBERS), shape: [NUMBERS.length] },
];

describe("datasets", () => {
  let file: Hdf5File;
  beforeAll(async () => {
    file = await Hdf5File.open(memorySource("x", await written(DATASETS)));
    return () => file.close();
  });

  it("have their shapes and kinds", async () => {
    const found = (await file.datasets()).map(({ name, shape, kind, bytesPerElement }) => [
      name,
      { shape, kind, bytesPerElement },
    ]);
    expect(Object.fromEntries(found)).toEqual({
      plain: { shape: SHAPE, kind: "float", bytesPerElement: 4 },
      doubles: { shape: SHAPE, kind: "float", bytesPerElement: 8 },
      chunked: { shape: SHAPE, kind: "int", bytesPerElement: 4 },
      packed: { shape: SHAPE, kind: "int", bytesPerElement: 2 },
      bytes: { shape: [NUMBERS.length], kind: "uint", bytesPerElement: 1 },
    });
  });

  it.each(DATASETS)("of $name are read in any range", async ({ name, data }) => {
    const { bytes } = (await file.datasets()).find((each) => each.name === name)!;
    const whole = new Uint8Array(data.buffer);
    for (const [begin, end] of [
      [0, bytes.byteLength],
      [1, 2],
      [bytes.byteLength - 3, bytes.byteLength],
      [bytes.byteLength >> 1, (bytes.byteLength >> 1) + 7777],
      [4001, 4003],
    ] as const) {
      const part = await readBytes(bytes, begin, Math.min(end, bytes.byteLength) - begin);
      expect(Buffer.compare(part, whole.subarray(begin, end))).toBe(0);
    }
  });
});

it("reads what is packed to a hundredth of its bytes", async () => {
  const packed = await written([
    { name: "zeros", data: new Float32Array(100_000), shape: [100_000], chunks: [50_000], compression: 9 },
  ]);
  expect(packed.byteLength).toBeLessThan(4000);
  const file = await Hdf5File.open(memorySource("x", packed));
  const [{ bytes }] = (await file.datasets()) as [Hdf5Dataset];
  expect((await readBytes(bytes, 0, bytes.byteLength)).some((byte) => byte !== 0)).toBe(false);
  expect(bytes.byteLength).toBe(400_000);
  await file.close();
});
