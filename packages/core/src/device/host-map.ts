/** Files in memory by the device's native code, for processes that share what they write. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { registry } from "./registry";

/** Where mappings may begin on every system. */
const PAGE = 1 << 16;

/**
 * Bytes of an open file (its descriptor) as memory: what is written there is in the file, and seen by whoever maps it. The file must be
 * as long, and its room taken, before they are touched. Undefined where the default device has nothing for it, or the system refuses.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function hostMap(file: number, offset: number, bytes: number): Uint8Array | undefined {
  const areCounts = [file, offset, bytes].every((x) => Number.isSafeInteger(x) && x >= 0);
  const problem = () =>
    `needs a descriptor, an offset that is a multiple of ${PAGE}, and a length, got ${show([file, offset, bytes])}.`;
  check(areCounts && offset % PAGE === 0 && bytes > 0, "BAD_ARGUMENT", "hostMap", problem);
  const buffer = registry.defaultDevice.backend.mapFile?.(file, offset, bytes);
  return buffer && new Uint8Array(buffer);
}
