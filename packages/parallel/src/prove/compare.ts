/** Where a resumed run first differs from one that was never broken. */
import type { LedgerLine } from "@opt/checkpoint";
import { causeOf, kindOf } from "./causes";
import { entriesOf, type Lines } from "./lines";

export interface Difference {
  readonly step: number;
  /** The one that comes first: what the others follow from. */
  readonly name: string;
  /** All of the step. */
  readonly names: readonly string[];
  readonly whole: unknown;
  readonly broken: unknown;
  readonly cause: string;
  /** Causes come before effects. */
  readonly kind: number;
}

/** Compares each line of a part with that of the whole run. `undefined`: all of them are equal. */
export function firstDifference(lines: Lines, part: Lines, isUnbroken = false): Difference | undefined {
  let isLate = false;
  for (const [i, broken] of part.entries()) {
    const same = lines.filter(({ step }) => step === broken.step);
    const found = same.map((whole) => ({ whole, names: differing(whole, broken, i === 0) }));
    const [closest] = found.sort((a, b) => a.names.length - b.names.length);
    if (closest === undefined) return beyond(lines, broken);
    if (closest.names.length > 0) {
      const given = { ...closest, broken, lines, isLate, isUnbroken };
      const { name, cause } = causeOf(given);
      const [one, other] = [closest.whole, broken].map((line) => entriesOf(line)[name]);
      return { step: broken.step, name, names: closest.names, whole: one, broken: other, cause, kind: kindOf(name) };
    }
    isLate = true;
  }
  return undefined;
}

/** Right after loading, a loop has no samples and no loss: then only what both lines tell of is compared. */
function differing(whole: LedgerLine, broken: LedgerLine, isFirst: boolean): string[] {
  const [a, b] = [entriesOf(whole), entriesOf(broken)];
  const [tops, others] = [a, b].map((entries) => new Set(Object.keys(entries).map(topOf)));
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  const compared = isFirst ? names.filter((name) => tops!.has(topOf(name)) && others!.has(topOf(name))) : names;
  const unequal = compared.filter((name) => a[name] !== b[name]);
  return unequal
    .map((name) => ({ name, kind: kindOf(name) }))
    .sort((x, y) => x.kind - y.kind)
    .map(({ name }) => name);
}

const topOf = (name: string) => name.split(".", 1)[0]!;

function beyond(lines: Lines, { step }: LedgerLine): Difference {
  const last = lines.at(-1)?.step;
  const cause = "The count of steps was not restored, or the run records other steps after it was resumed.";
  return { step, name: "step", names: ["step"], whole: last, broken: step, cause, kind: 0 };
}

/** Whether a part began at the start, and so has proven nothing. */
export const beganAnew = (lines: Lines, part: Lines): boolean => part.length > 0 && part[0]!.step <= lines[0]!.step;
