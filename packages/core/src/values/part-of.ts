/** The half-open interval of part `part` of `parts` of an extent, in whole multiples but at the end: the first parts have one more. */
export function partOf(length: number, parts: number, part: number, multiple = 1): [begin: number, end: number] {
  const count = Math.ceil(length / multiple);
  const each = Math.floor(count / parts);
  const larger = count % parts;
  const at = (cut: number) => Math.min(length, (cut * each + Math.min(cut, larger)) * multiple);
  return [at(part), at(part + 1)];
}
