/** What somebody may have meant by a name, or a pattern of names, that matches nothing. */
import { nearest as nearestNames, OptError } from "@opt/core";

const SHOWN = 3;

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
  const found = nearestNames(literal, names, SHOWN + 1, partOf);
  if (found.length === 0) return "There are no tensors.";
  return `The nearest names are ${found.slice(0, SHOWN).join(", ")}${found.length > SHOWN ? ", ..." : ""}.`;
}
