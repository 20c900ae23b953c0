/** A browser: the page's own files, checksums by tables, no threads of ours and no processes to be seen. */

import { hex } from "../stores/hex";
import { opfsFileSystem } from "../stores/opfs";
import type { Platform } from "./platform";

export const platform: Platform = {
  fileSystem: opfsFileSystem(),
  crc32(bytes, before = 0) {
    tables ??= makeTables();
    const [t0, t1, t2, t3, t4, t5, t6, t7] = tables;
    let crc = ~before;
    let i = 0;
    for (const end = bytes.length - 7; i < end; i += 8) {
      crc ^= bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
      crc =
        t7![crc & 255]! ^
        t6![(crc >>> 8) & 255]! ^
        t5![(crc >>> 16) & 255]! ^
        t4![crc >>> 24]! ^
        t3![bytes[i + 4]!]! ^
        t2![bytes[i + 5]!]! ^
        t1![bytes[i + 6]!]! ^
        t0![bytes[i + 7]!]!;
    }
    for (; i < bytes.length; i++) crc = (crc >>> 8) ^ t0![(crc ^ bytes[i]!) & 255]!;
    return ~crc >>> 0;
  },
  async sha256() {
    const { sha256 } = await import("@noble/hashes/sha2.js");
    const hash = sha256.create();
    return {
      update: (bytes) => void hash.update(bytes),
      digest: () => hex(hash.digest()),
    };
  },
  sha256Of: async (bytes) =>
    hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>))),
  request: async (url, request) => (await import("./fetch-request")).fetchRequest(url, request),
  sameBytes: (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i]),
  pages: (bytes) => new Uint8Array(bytes),
  threadCopies: () => ({ copy: (bytes) => bytes.slice(), free() {} }),
  startThread: undefined,
  thisProcess() {
    own ??= `browser.${hex(crypto.getRandomValues(new Uint8Array(6)))}.0.0`;
    return own;
  },
  threadId: 0,
  processLife: () => "unknown",
};

let own: string | undefined;
let tables: Int32Array[] | undefined;

/** Table k: what a byte does to the checksum when k bytes follow it. */
function makeTables(): Int32Array[] {
  const made = Array.from({ length: 8 }, () => new Int32Array(256));
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    made[0]![byte] = crc;
  }
  for (let k = 1; k < 8; k++) {
    for (let byte = 0; byte < 256; byte++) {
      const crc = made[k - 1]![byte]!;
      made[k]![byte] = (crc >>> 8) ^ made[0]![crc & 255]!;
    }
  }
  return made;
}
