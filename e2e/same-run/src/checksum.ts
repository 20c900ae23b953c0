/** One checksum of all tensors of a line: the exclusive or of theirs. */
import type { LedgerLine } from "@opt/checkpoint";

export const checksumOf = ({ tensors }: LedgerLine): string =>
  (Object.values(tensors).reduce((sum, each) => sum ^ Number.parseInt(each, 16), 0) >>> 0)
    .toString(16)
    .padStart(8, "0");
