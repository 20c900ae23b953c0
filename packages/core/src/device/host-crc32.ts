/** Checksums by the device's native code, for who checks much that lies in the host's memory. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { registry } from "./registry";

/**
 * zlib's CRC-32 of bytes in the host's memory, `before` being that of the bytes before them, where the default device has a faster one
 * than the host; else undefined.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function hostCrc32(bytes: Uint8Array, before = 0): number | undefined {
  check(bytes instanceof Uint8Array, "BAD_ARGUMENT", "hostCrc32", () => `needs a Uint8Array, got ${show(bytes)}.`);
  return registry.defaultDevice.backend.crc32?.(bytes, before);
}
