import { bytesPerElement } from "../src/format/dtype";
import type { TensorSource } from "../src/format/source";
import { elementCount, wholeOf } from "../src/layout/box";
import { PlannedSource, ReadRequest } from "../src/read/read-plan";
import { ReadPool } from "../src/read/read-pool";

/** The bytes of a whole tensor, put together from its boxes by the package's own reader. */
export async function readTensor(source: TensorSource, name: string): Promise<Uint8Array> {
  const tensor = source.tensors.get(name);
  if (tensor === undefined) throw new Error(`${name} is not among ${[...source.tensors.keys()].join(", ")}`);
  const bytes = new Uint8Array(elementCount(tensor.shape)! * bytesPerElement(tensor.dtype));
  await new ReadPool().fill([new ReadRequest(new PlannedSource(tensor), wholeOf(tensor.shape), bytes)]);
  return bytes;
}

export async function readFloats(source: TensorSource, name: string): Promise<number[]> {
  return [...new Float32Array((await readTensor(source, name)).buffer)];
}
