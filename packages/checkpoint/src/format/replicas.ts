/** Replicas that must be equal, by their checksums: compared where that is asked for. */
import { OptError } from "@opt/core";
import { type Box, byPlace, describeBox, sameBox } from "../layout/box";
import { crcText } from "./crc32";
import type { ManifestBox } from "./manifest";
import type { CompareReplicas } from "./record";

interface Holder {
  readonly rank: number;
  readonly crc32: number;
}

/** Throws BAD_STATE for replicas that differ, whether two ranks wrote them or one only holds its own. */
export const compareReplicas: CompareReplicas = (records, tensors, writers) => {
  const holder = ({ file, crc32 }: ManifestBox): Holder => ({ rank: writers[file]!, crc32 });
  for (const { name, boxes } of tensors.values()) {
    let first: ManifestBox | undefined;
    for (const box of [...boxes].sort(byPlace)) {
      if (!first || !sameBox(first, box)) first = box;
      else if (first.crc32 !== box.crc32) throw unequal(name, box, [holder(first), holder(box)]);
    }
  }
  for (const { rank, held } of records) {
    for (const { tensor, crc32, ...replica } of held) {
      const box = tensors.get(tensor)!.boxes.find((one) => sameBox(one, replica));
      if (box && box.crc32 !== crc32) throw unequal(tensor, box, [holder(box), { rank, crc32 }]);
    }
  }
};

function unequal(name: string, box: Box, holders: readonly Holder[]): OptError {
  const [a, b] = holders.map(({ rank, crc32 }) => `rank ${rank} has ${crcText(crc32)}`);
  return new OptError(
    "BAD_STATE",
    `tensor ${JSON.stringify(name)}`,
    `replicas of ${describeBox(box)} must be equal, but ${a} and ${b} as checksum.`,
    "The ranks have drifted apart: find out why, or save with checkReplicas: false.",
  );
}
