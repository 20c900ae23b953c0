/** Checks options objects. JavaScript accepts a misspelt name, or a number in place of the object, silently. */
import { check } from "./errors";
import { isPlainObject, show } from "./show";

/** What the value of an option may be; `any` where whoever takes it checks. */
export type OptionKind = "boolean" | "number" | "string" | "function" | "object" | "array" | "any";

/**
 * Checks that `options` is an object with known names and values of the right kind. An `undefined` value counts as left out.
 *
 * @param kinds every option there is, with what it may be
 * @throws OptError BAD_ARGUMENT naming the option, and the one that was meant where that can be told
 * @example
 * checkOptions("Linear", { bias: false }, { bias: "boolean" }); // for { bais: false }: there is no option bais. Did you mean bias?
 */
export function checkOptions(
  where: string,
  options: unknown,
  kinds: Readonly<Record<string, OptionKind | readonly OptionKind[]>>,
): void {
  // The advice costs more than most calls that take options: it is only written where it is read.
  check(
    isPlainObject(options),
    "BAD_ARGUMENT",
    where,
    () => `options must be an object, got ${show(options)}. ${didYouMean("", Object.keys(kinds))}`,
  );
  for (const name of Object.keys(options)) {
    const value = options[name];
    check(
      Object.hasOwn(kinds, name),
      "BAD_ARGUMENT",
      where,
      () => `there is no option ${name}. ${didYouMean(name, Object.keys(kinds))}`,
    );
    check(
      value === undefined || isOneOf(value, kinds[name]!),
      "BAD_ARGUMENT",
      where,
      () =>
        `${name} must be ${[kinds[name]!]
          .flat()
          .map((kind) => (/^[aeiou]/.test(kind) ? `an ${kind}` : `a ${kind}`))
          .join(" or ")}, got ${show(value)}.`,
    );
  }
}

/** "Did you mean bias?", or the list of names where none is close. */
export function didYouMean(name: string, names: readonly string[]): string {
  const plain = (text: string) => text.replaceAll(/[_-]/g, "").toLowerCase();
  const best = names
    .map((known) => ({ known, distance: editDistance(plain(name), plain(known)) }))
    .sort((a, b) => a.distance - b.distance)[0];
  if (best !== undefined && best.distance <= Math.min(2, best.known.length / 2)) return `Did you mean ${best.known}?`;
  return names.length === 0 ? "It takes no options." : `Options: ${names.join(", ")}.`;
}

function isOneOf(value: unknown, allowed: string | readonly string[]): boolean {
  const kind = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  return allowed.includes("any") || allowed.includes(kind);
}

/** Levenshtein's distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length]!;
}
