import { afterEach, beforeEach, vi } from "vitest";

const wait = globalThis.setTimeout;

/** In the tests of a suite, what waits before it tries again waits a twentieth of its time. */
export function shortWaits(): void {
  beforeEach(() => {
    const short = (next: () => void, milliseconds = 0) => wait(next, milliseconds / 20);
    vi.spyOn(globalThis, "setTimeout").mockImplementation(short as never);
  });
  afterEach(() => void vi.restoreAllMocks());
}
