/** What somebody may have meant by a name that is not there. */

/** Of more names only these are looked at: an error must not take long. */
const MOST = 10_000;

/**
 * The names that are most like one that is not there, the nearest first: by how many characters to put in, take out or replace
 * (Levenshtein's distance). `partOf`: what of a name is compared.
 *
 * @example
 * nearest("wieght", ["bias", "weight"], 1); // ["weight"]
 */
export function nearest(
  name: string,
  names: Iterable<string>,
  count: number,
  partOf: (name: string) => string = (name) => name,
): string[] {
  const ranked = [...names].slice(0, MOST).map((each) => [each, distance(name, partOf(each))] as const);
  return ranked
    .sort(([, a], [, b]) => a - b)
    .slice(0, count)
    .map(([each]) => each);
}

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
