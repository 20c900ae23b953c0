import { afterEach, beforeEach, vi } from "vitest";

const wait = globalThis.setTimeout;

/** In the tests of a suite, what waits before it tries again waits a twentieth of its time. */
export function shortWaits(): void {
  beforeEach(() => {
    const short = (next: (...given: unknown[]) => void, milliseconds = 0, ...given: unknown[]) =>
      wait(next, milliseconds / 20, ...given);
    vi.spyOn(globalThis, "setTimeout").mockImplementation(short as never);
  });
  afterEach(() => void vi.restoreAllMocks());
}
