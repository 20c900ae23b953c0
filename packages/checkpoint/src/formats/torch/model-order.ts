/** Which parameter each number of an optimizer is, where its groups list parameters in the model's order. */

/** The places that are open, and how they were reached: by how many ways (two stands for more), and by one of them. */
interface Reached {
  readonly taken: readonly number[];
  ways: 1 | 2;
  readonly before: Reached | undefined;
  /** The group whose parameter came last; undefined where the optimizer has not got it. */
  readonly group: number | undefined;
}

/** More of them are not looked at: nothing is proven then. */
const MOST = 4096;

/**
 * The names of all keys, if there is one way alone to merge the groups into the model's order. A model may have parameters that no group
 * lists.
 *
 * @param fits whether a key may be that parameter: false where shapes differ
 */
export function namesInOrder(
  groups: readonly (readonly string[])[],
  parameters: readonly string[],
  fits: (key: string, parameter: string) => boolean,
): Map<string, string> | undefined {
  const count = groups.reduce((sum, { length }) => sum + length, 0);
  let reached: Reached[] = [{ taken: groups.map(() => 0), ways: 1, before: undefined, group: undefined }];
  for (const [place, parameter] of parameters.entries()) {
    const next = new Map<string, Reached>();
    const reach = (before: Reached, group: number | undefined) => {
      const taken = before.taken.map((n, g) => (g === group ? n + 1 : n));
      const left = count - taken.reduce((sum, n) => sum + n, 0);
      if (left > parameters.length - place - 1) return;
      const known = next.get(taken.join());
      if (known === undefined) next.set(taken.join(), { taken, ways: before.ways, before, group });
      else known.ways = 2;
    };
    for (const each of reached) {
      reach(each, undefined);
      for (const [g, keys] of groups.entries()) {
        const key = keys[each.taken[g]!];
        if (key !== undefined && fits(key, parameter)) reach(each, g);
      }
    }
    reached = [...next.values()];
    if (reached.length > MOST) return undefined;
  }
  const [end] = reached;
  if (end === undefined || end.ways > 1) return undefined;
  const names = new Map<string, string>();
  let place = parameters.length;
  for (let at: Reached = end; at.before !== undefined; at = at.before) {
    place--;
    if (at.group !== undefined) names.set(groups[at.group]![at.before.taken[at.group]!]!, parameters[place]!);
  }
  return names;
}
