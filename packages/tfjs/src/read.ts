/** Reading TF.js' tensors at once: steps are synchronous, and not every backend answers. */
import { check, OptError } from "@opt/core";
import { engine, fill, type KernelBackend, square, type Tensor, tidy } from "@tensorflow/tfjs-core";

/** TF.js' wasm backend: tensors lie in one memory, of which it makes views. */
interface Heap {
  typedArrayFromHeap(tensor: Tensor): Float32Array;
}

const proven = new WeakSet<KernelBackend>();

/** On webgpu a synchronous read goes through a canvas, which gives zeros where nothing is displayed (software adapters). @throws OptError NOT_SYNC */
function checkReads(where: string, backend: KernelBackend): void {
  if (proven.has(backend)) return;
  const [value] = tidy(() => square(fill([4], 3)).dataSync());
  check(
    value === 9,
    "NOT_SYNC",
    where,
    () => `TF.js reads ${value} for 9 where it must answer at once.`,
    "Train on another backend: webgl, wasm.",
  );
  proven.add(backend);
}

/** Values of a tensor where its backend has them, else a copy. Valid until TF.js computes again. @throws OptError NOT_SYNC */
export function valuesOf(where: string, name: string, tensor: Tensor): Float32Array {
  const { backend } = engine();
  // A copy for each step would be garbage of the gradients' size, whose collection takes longer than the step.
  if ("typedArrayFromHeap" in backend && backend.refCount(tensor.dataId) > 0) {
    return (backend as unknown as Heap).typedArrayFromHeap(tensor);
  }
  try {
    checkReads(where, backend);
    return tensor.dataSync<"float32">();
  } catch (cause) {
    if (cause instanceof OptError) throw cause;
    const problem = `${name} cannot be read without waiting: ${String(cause)}.`;
    throw new OptError("NOT_SYNC", where, problem, "Train on a backend that has dataSync().", { cause });
  }
}
