/** Files and the host's own memory by the addon's native code. */
import type { HostIo } from "@opt/core";
import { checkThreads } from "./backend";
import { loadAddon } from "./load-addon";
import { newPages } from "./memory";

/** @throws OptError DEVICE_UNAVAILABLE if there is no binary */
export function openHostIo(): HostIo {
  const addon = loadAddon();
  const { crc32, readFile, mapFile } = addon;
  return {
    ...(crc32 && { crc32 }),
    ...(readFile && { read: readFile }),
    ...(mapFile && { map: (...range) => asBytes(mapFile(...range)) }),
    pages: (bytes) => newPages(addon, bytes),
    copy: (target, source) => addon.copyBytes(target, source, checkThreads()),
  };
}

function asBytes(buffer: ArrayBuffer | null): Uint8Array | undefined {
  return buffer === null ? undefined : new Uint8Array(buffer);
}
