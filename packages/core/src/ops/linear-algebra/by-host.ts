/** Algorithms of the host on each matrix of a batch: in float64, so that all devices get the same words. */
import { inEachRun } from "../../device/host-code";
import { check } from "../../errors/errors";
import { decode } from "../../tensor/read";
import { noGrad } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { byteSize } from "../../values/dtype";
import { type Shape, sizeOf } from "../../values/shape";

let hasWarned = false;

/**
 * What `body` makes of each matrix a [m, n] of x [..., m, n], which it may overwrite: a result of each shape, after the batch's axes. Now, and in
 * each run of a compiled function. Without a gradient. A device with memory of its own waits for it, and warns once.
 *
 * @throws OptError NOT_SYNC on a device that cannot be read without waiting
 */
export function byHost(
  where: string,
  x: Tensor,
  shapes: readonly Shape[],
  body: (a: Float64Array, results: readonly Float64Array[]) => void,
): Tensor[] {
  const { device, dtype, shape } = x;
  const { backend } = device;
  check(
    backend.readSync !== undefined,
    "NOT_SYNC",
    where,
    () => `the host computes it, and ${device.name} cannot be read without waiting.`,
    'Move it first: await x.to("js").',
  );
  if (!backend.sharesMemory && !hasWarned) {
    hasWarned = true;
    console.warn(`[${where}] ${device.name} has no kernel for it: the host computes it, and copies there and back.`);
  }
  const batch = shape.slice(0, -2);
  const outputs = noGrad(() => shapes.map((own) => Tensor.empty([...batch, ...own], dtype, device)));
  inEachRun([x, ...outputs], (x, ...outputs) => {
    const from = x.memorySlice();
    const given = Float64Array.from(
      decode(x, backend.readSync!(from.memory, from.byteOffset, x.size * byteSize(dtype))),
    );
    const results = outputs.map(({ size }) => new Float64Array(size));
    const size = sizeOf(shape.slice(-2));
    for (let i = 0; i < sizeOf(batch); i++) {
      const parts = results.map((all, k) => all.subarray(i * sizeOf(shapes[k]!), (i + 1) * sizeOf(shapes[k]!)));
      body(given.subarray(i * size, (i + 1) * size), parts);
    }
    for (const [k, output] of outputs.entries()) {
      const rounded = dtype === "f64" ? results[k]! : Float32Array.from(results[k]!);
      const to = output.memorySlice();
      backend.write(to.memory, to.byteOffset, new Uint8Array(rounded.buffer));
    }
  });
  return outputs;
}

/** @throws OptError BAD_ARGUMENT */
export function checkFinite(where: string, a: Float64Array): void {
  const at = a.findIndex((value) => !Number.isFinite(value));
  check(
    at < 0,
    "BAD_ARGUMENT",
    where,
    () => `elements must be finite, got ${a[at]}.`,
    "Look for NaN with isfinite(x).",
  );
}

/** The matrix a [m, n] transposed. */
export function turned(a: Float64Array, m: number, n: number): Float64Array {
  const result = new Float64Array(a.length);
  for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) result[j * m + i] = a[i * n + j]!;
  return result;
}
