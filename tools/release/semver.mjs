/** As much of semantic versions as peer ranges of this workspace need: `^1.2.3`, several of them joined by `||`. */

/** @typedef {[major: number, minor: number, patch: number]} Version */

/** @param {string} text @returns {Version} */
export function parse(text) {
  const [, ...parts] = /^(\d+)\.(\d+)\.(\d+)$/.exec(text) ?? [];
  if (parts.length !== 3) throw new Error(`A version is three numbers, got "${text}".`);
  return /** @type {Version} */ (parts.map(Number));
}

/** @param {Version} a @param {Version} b */
export const compare = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];

/** The lower ends of a range. @param {string} range */
function carets(range) {
  return range.split("||").map((part) => {
    const text = part.trim();
    if (!text.startsWith("^")) throw new Error(`A peer range is ^1.2.3, or some of them joined by ||, got "${range}".`);
    return text.slice(1);
  });
}

/** Whether a range allows a version. @param {string} range @param {string} version */
export function admits(range, version) {
  const asked = parse(version);
  return carets(range).some((lower) => {
    const from = parse(lower);
    const leading = from.findIndex((part) => part > 0);
    const fixed = leading < 0 ? 3 : leading + 1;
    return compare(asked, from) >= 0 && from.slice(0, fixed).every((part, i) => part === asked[i]);
  });
}

/** The lowest version that a range allows. @param {string} range */
export function lowest(range) {
  return carets(range).sort((a, b) => compare(parse(a), parse(b)))[0] ?? "";
}

/** The range, with a version that it does not allow added. What was never released (0.0.x) is left out. @param {string} range @param {string} version */
export function widened(range, version) {
  if (admits(range, version)) return range;
  const kept = carets(range).filter((lower) => !lower.startsWith("0.0."));
  return [...kept, version].map((lower) => `^${lower}`).join(" || ");
}

/** What a `^` range keeps fixed: 1 of 1.2.3, 0.2 of 0.2.3. @param {string} version */
export function series(version) {
  const [major, minor] = parse(version);
  return major > 0 ? `${major}` : `0.${minor}`;
}
