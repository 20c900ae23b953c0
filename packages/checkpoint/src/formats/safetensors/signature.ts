import { MAX_HEADER_BYTES } from "../../format/safetensors-writer";

/** Eight bytes of header length, of one that may be, then the JSON's brace: also where the rest is missing. */
export function beginsWithHeader(head: Uint8Array): boolean {
  if (head.length < 9 || head[8] !== 0x7b) return false;
  return new DataView(head.buffer, head.byteOffset).getBigUint64(0, true) <= BigInt(MAX_HEADER_BYTES);
}
