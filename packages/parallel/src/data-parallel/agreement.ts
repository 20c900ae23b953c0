/** What must be equal on all ranks before the first step: compared by one number, and named where it is not. */
import { check } from "@opt/core";
import { digest } from "../communicator/digest";
import type { Group } from "../communicator/group";
import { broadcastJson, gatherJson } from "../communicator/messages";

/** One line for each thing that must be equal; the first word names it. */
export type Lines = readonly string[];

const digestOf = (lines: Lines) => digest(new TextEncoder().encode(lines.join("\n")));

/** @param lines of this rank. @throws OptError BAD_STATE on every rank, naming the first that differs from rank 0, and in what */
export async function agree(group: Group, where: string, lines: Promise<Lines> | Lines): Promise<void> {
  // All begin now: what the program begins next comes after them on every rank.
  const [up, down, details, verdict] = [1, 2, 3, 4].map(() => group.begin(where)) as [
    ReturnType<Group["begin"]>,
    ReturnType<Group["begin"]>,
    ReturnType<Group["begin"]>,
    ReturnType<Group["begin"]>,
  ];
  const own = await lines;
  const digests = await gatherJson(group, up, digestOf(own));
  const isEqual = await broadcastJson(
    group,
    down,
    digests?.every((each) => each === digests[0]),
    0,
  );
  if (isEqual) return;
  const all = await gatherJson(group, details, own);
  const difference = await broadcastJson(group, verdict, all && differenceOf(all), 0);
  check(false, "BAD_STATE", where, () => `all ranks must agree, got ${difference}.`, ADVICE);
}

const ADVICE =
  "Build the same model on all ranks, with the same versions of packages; give them equal weights by one seed, one checkpoint or broadcast().";

function differenceOf(all: readonly Lines[]): string {
  const [first] = all as [Lines];
  for (const [rank, lines] of all.entries()) {
    const at = Array.from({ length: Math.max(lines.length, first.length) }, (_, i) => i).find(
      (i) => lines[i] !== first[i],
    );
    if (at === undefined) continue;
    const shown = (line: string | undefined) => (line === undefined ? "nothing" : `"${line}"`);
    return `${shown(first[at])} on rank 0 and ${shown(lines[at])} on rank ${rank}`;
  }
  return "lists that changed meanwhile";
}
