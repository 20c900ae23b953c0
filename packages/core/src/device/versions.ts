/** What has changed since somebody looked: counts, because a step or a replay that looked at thousands of tensors each time would take longer for it than for its launch. */
import { shared } from "../host/shared";

/** Memory that knows how often it was overwritten. */
export interface Versioned {
  readonly isAlive: boolean;
  /** The number under which its overwrites can be counted from now on. */
  readonly versionNumber: number;
}

/** Tensors with `isWatched` that were disposed, and tensors whose gradient, need or hook of one is another. */
export const changes = /* @__PURE__ */ shared("changes", () => ({ disposed: 0, leaves: 0 }));

/** How often memory was overwritten, where steps and replays do it: numbers that lie side by side. */
const all = /* @__PURE__ */ shared("versions", () => ({
  counts: new Int32Array(256),
  used: 0,
  free: [] as number[],
  returned: 0,
}));

/** A number that nobody else has. */
export function takeVersionNumber(): number {
  const number = all.free.pop() ?? all.used++;
  if (number === all.counts.length) {
    const counts = new Int32Array(2 * number);
    counts.set(all.counts);
    all.counts = counts;
  }
  return number;
}

export function returnVersionNumber(number: number): void {
  all.free.push(number);
  all.returned++;
}

/** How many numbers were returned so far: each may be somebody else's since. */
export function returnedNumbers(): number {
  return all.returned;
}

export function countOf(versionNumber: number): number {
  return all.counts[versionNumber]!;
}

/** One overwrite more for each of them. */
export function countOverwrites(versionNumbers: Int32Array): void {
  const { counts } = all;
  for (let i = 0; i < versionNumbers.length; i++) counts[versionNumbers[i]!]! += 1;
}

export function versionNumbers(storages: Iterable<Versioned>): Int32Array {
  return Int32Array.from(storages, (storage) => storage.versionNumber);
}
