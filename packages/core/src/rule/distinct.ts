/** Rules or row programs, each computation once. Of those with the same hash, the last stays. */
export function distinctByHash<T extends { readonly hash: string }>(all: readonly T[]): T[] {
  return [...new Map(all.map((each) => [each.hash, each])).values()];
}
