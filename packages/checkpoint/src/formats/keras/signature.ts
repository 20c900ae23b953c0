import { latin1 } from "../bytes/latin1";

/** An HDF5 file by its first bytes. */
export function isHdf5(head: Uint8Array): boolean {
  return latin1(head.subarray(0, 8)) === "\x89HDF\r\n\x1a\n";
}
