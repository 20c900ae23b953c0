/** Ops whose algorithm is the host's: it reads one tensor, and writes others. All devices then get the same words. */
import type { HostKernels } from "../backend/host-kernels";
import { inEachRun } from "../device/host-code";
import { check } from "../errors/errors";
import { decode } from "../tensor/read";
import { noGrad } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { byteSize, type TypedArray, viewElements } from "../values/dtype";
import type { Shape } from "../values/shape";

let hasWarned = false;

/**
 * Tensors of given shapes and of x's dtype that `body` computes from x's elements, which it leaves as they are, into all of theirs: now, and in each run of a compiled function. Without a
 * gradient. A device with memory of its own waits for it, and warns once.
 *
 * @throws OptError UNSUPPORTED on a device that cannot be read without waiting
 */
export function byHost(
  where: string,
  x: Tensor,
  shapes: readonly Shape[],
  body: (given: TypedArray, results: readonly TypedArray[], kernels?: HostKernels) => void,
): Tensor[] {
  const { device, dtype } = x;
  const { backend } = device;
  check(
    backend.readSync !== undefined,
    "UNSUPPORTED",
    where,
    () => `the host computes it, got ${dtype} on ${device.name}, which cannot be read without waiting.`,
    'Move it first: tensorFromBytes(await x.bytes(), x.shape, { dtype: x.dtype, device: "js" }).',
  );
  if (!backend.sharesMemory && !hasWarned) {
    hasWarned = true;
    console.warn(`[${where}] ${device.name} has no kernel for it: the host computes it, and copies there and back.`);
  }
  const outputs = noGrad(() => shapes.map((shape) => Tensor.empty(shape, dtype, device)));
  inEachRun([x, ...outputs], (x, ...outputs) => {
    const { memory, byteOffset } = x.memorySlice();
    const given = decode(
      x,
      (backend.hostView ?? backend.readSync!).call(backend, memory, byteOffset, x.size * byteSize(dtype)),
    );
    const results = outputs.map((output) => {
      const { memory, byteOffset } = output.memorySlice();
      const bytes = output.size * byteSize(dtype);
      return { memory, byteOffset, to: backend.hostView?.(memory, byteOffset, bytes) ?? new Uint8Array(bytes) };
    });
    body(
      given,
      results.map(({ to }) => viewElements(to.buffer, to.byteOffset, to.byteLength / byteSize(dtype), dtype)),
      backend.hostKernels,
    );
    if (backend.hostView) return;
    for (const { memory, byteOffset, to } of results) backend.write(memory, byteOffset, to);
  });
  return outputs;
}
