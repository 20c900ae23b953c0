/** What must be equal on all ranks before the first step: compared by one number, and named where it is not. */
import { OptError, type Tensor } from "@opt/core";
import { digest } from "../communicator/digest";
import type { Group } from "../communicator/group";
import { broadcastJson, gatherJson } from "../communicator/messages";

/** One line for each thing that must be equal; the first word names it. */
export type Lines = readonly string[];

const digestOf = (lines: Lines) => digest(new TextEncoder().encode(lines.join("\n")));

/**
 * @param lines of this rank
 * @param isAble what this rank says of itself
 * @param heading what they are about to do
 * @returns whether all ranks say so
 * @throws OptError BAD_STATE on every rank, naming the first that differs from rank 0, and in what
 */
export async function agree(
  group: Group,
  where: string,
  lines: Promise<Lines> | Lines,
  isAble: boolean,
  heading: { readonly what: string; readonly advice: string } = { what: `new ${where}`, advice: ADVICE },
): Promise<boolean> {
  // All begin now: what the program begins next comes after them on every rank.
  const begin = () => group.begin(where, { what: heading.what });
  const [up, down, details, verdict] = [begin(), begin(), begin(), begin()];
  const own = await lines;
  const given = await gatherJson(group, up, { digest: digestOf(own), isAble });
  const all = given && {
    areEqual: given.every(({ digest }) => digest === given[0]!.digest),
    areAble: given.every((each) => each.isAble),
  };
  const { areEqual, areAble } = await broadcastJson(group, down, all, 0);
  if (areEqual) return areAble;
  const listed = await gatherJson(group, details, own);
  const difference = await broadcastJson(group, verdict, listed && differenceOf(listed), 0);
  throw new OptError("BAD_STATE", where, `all ranks must agree, got ${difference}.`, heading.advice);
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

/** Of an optimizer, as `groups` shows them. */
export type Groups = readonly { readonly params: readonly Tensor[] }[];

/** All options but the parameters. */
export function optionsLine(groups: Groups): string {
  const options = groups.map(({ params: _, ...each }): { lr?: unknown } => each);
  return `lr ${options.map(({ lr }) => lr).join()}, options ${digestOf([JSON.stringify(options)])}`;
}
