/** What somebody may have meant by a name, or a pattern of names, that matches nothing. */
import { OptError } from "@opt/core";

const SHOWN = 3;
/** Of more names only these are looked at: an error must not take long. */
const MOST = 10_000;

/** @throws OptError BAD_ARGUMENT for a pattern of an option that has matched no name */
export function checkUsed(option: string, [idle]: Iterable<string>, names: Iterable<string>): void {
  if (idle === undefined) return;
  const problem = `its pattern ${JSON.stringify(idle)} matches no tensor.`;
  throw new OptError("BAD_ARGUMENT", option, problem, nearest(idle, names));
}

/** The names that are most like it, for an error's advice. */
export function nearest(pattern: string, names: Iterable<string>): string {
  const literal = pattern.replaceAll("*", "");
  const partOf = (name: string): string => {
    if (pattern.endsWith("*")) return name.slice(0, literal.length);
    return pattern.startsWith("*") ? name.slice(-literal.length) : name;
  };
  const all = [...names].slice(0, MOST);
  if (all.length === 0) return "There are no tensors.";
  const ranked = all.map((name) => [name, distance(literal, partOf(name))] as const).sort(([, a], [, b]) => a - b);
  const shown = ranked.slice(0, SHOWN).map(([name]) => name);
  return `The nearest names are ${shown.join(", ")}${all.length > SHOWN ? ", ..." : ""}.`;
}

/** Levenshtein's: how many characters to put in, take out or replace. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}
