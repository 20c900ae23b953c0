/** The half-open interval of part `part` of `parts` of an extent: the first `length mod parts` parts have one more. */
export function partOf(length: number, parts: number, part: number): [begin: number, end: number] {
  const each = Math.floor(length / parts);
  const larger = length % parts;
  return [part * each + Math.min(part, larger), (part + 1) * each + Math.min(part + 1, larger)];
}
