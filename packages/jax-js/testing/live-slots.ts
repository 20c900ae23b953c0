/** How many blocks of memory jax-js holds on a device: its own count is not to be had, so its backend is watched. */
import { numpy as np } from "@jax-js/jax";

interface Backend {
  malloc(size: number, data?: Uint8Array): number;
  incRef(slot: number): void;
  decRef(slot: number): void;
}

/** Counts from now on, on the device of new arrays: the blocks made since that still live. */
export function watchSlots(): () => number {
  const backend = backendOf();
  const { malloc, incRef, decRef } = backend;
  const counts = new Map<number, number>();
  const change = (slot: number, by: number) => {
    const count = counts.get(slot);
    if (count === undefined) return;
    if (count + by === 0) counts.delete(slot);
    else counts.set(slot, count + by);
  };
  backend.malloc = function (size, data) {
    const slot = malloc.call(this, size, data);
    counts.set(slot, 1);
    return slot;
  };
  backend.incRef = function (slot) {
    incRef.call(this, slot);
    change(slot, 1);
  };
  backend.decRef = function (slot) {
    decRef.call(this, slot);
    change(slot, -1);
  };
  return () => counts.size;
}

/** Every op puts its operands on the backend that computes it. */
function backendOf(): Backend {
  const prototype = np.Array.prototype as unknown as { _putSync(backend: Backend): np.Array };
  const { _putSync } = prototype;
  let found: Backend | undefined;
  prototype._putSync = function (backend) {
    found = backend;
    return _putSync.call(this, backend);
  };
  np.array([1, 2])
    .add(np.array([3, 4]))
    .dispose();
  prototype._putSync = _putSync;
  return found!;
}
