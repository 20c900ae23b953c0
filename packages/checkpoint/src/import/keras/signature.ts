/** An HDF5 file by its first bytes. */
export function isHdf5(head: Uint8Array): boolean {
  return new TextDecoder("latin1").decode(head.subarray(0, 8)) === "\x89HDF\r\n\x1a\n";
}
