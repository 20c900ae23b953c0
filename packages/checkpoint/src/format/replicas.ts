/** Replicas that must be equal, by their checksums: compared where that is asked for. */
import { OptError } from "@opt/core";
import { type Box, describeBox } from "../layout/box";
import { crcText } from "./crc32";
import type { RankReport } from "./record";

interface Planned {
  readonly tensor: { readonly name: string };
  readonly box: Box;
}

/** `heldBy`: what a rank holds and another writes, in the order of its report. Throws BAD_STATE for replicas that differ. */
export function compareReplicas<T extends Planned>(
  plan: readonly (readonly T[])[],
  heldBy: (rank: number) => readonly T[],
  reports: readonly RankReport[],
): void {
  const written = new Map<T, { rank: number; crc32: number }>();
  for (const [rank, boxes] of plan.entries())
    for (const [i, one] of boxes.entries()) written.set(one, { rank, crc32: reports[rank]!.checksums[i]! });
  for (const [rank, { replicas }] of reports.entries()) {
    const held = replicas.length > 0 ? heldBy(rank) : [];
    for (const [i, one] of held.entries()) {
      const first = written.get(one)!;
      if (first.crc32 === replicas[i]) continue;
      const [a, b] = [first, { rank, crc32: replicas[i]! }].map((it) => `rank ${it.rank} has ${crcText(it.crc32)}`);
      throw new OptError(
        "BAD_STATE",
        `tensor ${JSON.stringify(one.tensor.name)}`,
        `replicas of ${describeBox(one.box)} must be equal, but ${a} and ${b} as checksum.`,
        "The ranks have drifted apart: find out why, or save with checkReplicas: false.",
      );
    }
  }
}
