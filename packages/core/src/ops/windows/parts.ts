/** Axes cut into parts, for pools that are asked for a number of results. */

/** Part i of an axis begins at floor(i size / count) and ends before ceil((i + 1) size / count): parts overlap where they must. */
export function partsOf(size: number, count: number) {
  const from = (part: number) => Math.floor((part * size) / count);
  const to = (part: number) => Math.ceil(((part + 1) * size) / count);
  let most = 0;
  for (let part = 0; part < count; part++) most = Math.max(most, to(part) - from(part));
  return {
    /** How many elements the longest part has. */
    most,
    /** The position of an element of a part; -1 beyond its end. */
    at: (part: number, tap: number) => (from(part) + tap < to(part) ? from(part) + tap : -1),
    last: (part: number) => to(part) - 1,
  };
}
