/** Files read by the device's native code, for who checks what it reads. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { registry } from "./registry";

/**
 * Fills all of `bytes` from `position` of an open file (its descriptor): a promise of their CRC-32 (zlib's), taken by the threads that
 * read; until then the file must stay open, and the memory where it is. The promise is of undefined where the file ends before or the
 * system refuses, and there is none where the default device has nothing for it.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function hostRead(file: number, bytes: Uint8Array, position: number): Promise<number | undefined> | undefined {
  const areCounts = [file, position].every((x) => Number.isSafeInteger(x) && x >= 0);
  const problem = () => `needs a descriptor, a Uint8Array and a position, got ${show([file, bytes, position])}.`;
  check(areCounts && bytes instanceof Uint8Array, "BAD_ARGUMENT", "hostRead", problem);
  return registry.defaultDevice.backend.readFile?.(file, bytes, position);
}
