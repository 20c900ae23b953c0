/** Memory in large pages by the device's native code, for who hands much of it to the disk. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { registry } from "./registry";

/**
 * New memory of the host's, zeros, that begins with a page, in large pages where the system has some: disks take what lies there without
 * a look at each small page. Undefined where the default device has nothing for it.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function hostPages(bytes: number): Uint8Array | undefined {
  const isCount = Number.isSafeInteger(bytes) && bytes >= 0;
  check(isCount, "BAD_ARGUMENT", "hostPages", () => `needs a whole number of bytes, got ${show(bytes)}.`);
  return registry.defaultDevice.backend.pages?.(bytes);
}
