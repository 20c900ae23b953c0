/** Large blocks share no byte, share memory whatever their sizes, and keep no more pages than once lived. */
import { staggeredBytes } from "@opt/core/backend";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import type { Addon } from "./addon";
import { loadAddon } from "./load-addon";
import { addressOf, type Part, Regions } from "./regions";

const MEBI = 2 ** 20;

/** Regions of an addon that notes what goes back to the system. */
function watched(own: Partial<Addon> = {}) {
  const addon = loadAddon();
  const released: { address: number; bytes: number }[] = [];
  const dropped: Uint8Array[] = [];
  let gone = 0;
  const regions = new Regions({
    ...addon,
    release: (view) => {
      dropped.push(view as Uint8Array);
      gone += view.buffer.byteLength;
      addon.release(view);
    },
    releasePages: (address, bytes) => {
      released.push({ address, bytes });
      gone += bytes;
    },
    ...own,
  });
  const allocate = (mebi: number) => regions.allocate(mebi * MEBI)!;
  return { regions, allocate, released, dropped, gone: () => gone / MEBI };
}

describe.skipIf(missingDevice)(`large blocks${missingDevice ?? ""}`, () => {
  it("overlap with none, and are one free part again once all are back", () => {
    const unit = 4096;
    const step = fc.tuple(fc.integer({ min: 1, max: 600 }), fc.nat(), fc.nat({ max: 9 }));
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 80 }), (steps) => {
        const { regions, dropped } = watched();
        const live: Part[] = [];
        for (const [pages, choice, action] of steps) {
          const part = regions.allocate(pages * unit)!;
          expect([part.bytes, part.start + part.bytes <= part.region.bytes]).toEqual([pages * unit, true]);
          const isApart = (other: Part) =>
            addressOf(part) + part.bytes <= addressOf(other) || addressOf(other) + other.bytes <= addressOf(part);
          expect(live.every(isApart)).toBe(true);
          live.push(part);
          if (action < 5) regions.free(live.splice(choice % live.length, 1)[0]!);
          if (action === 9) regions.clear();
        }
        const last = new Set(live.map(({ region }) => region));
        for (const part of live) regions.free(part);
        regions.clear();
        for (const { view } of last) expect(dropped).toContain(view);
      }),
      { numRuns: 100, seed: 3 },
    );
  });

  it("take the smallest free part that holds them, of any size", () => {
    const { regions, allocate } = watched();
    const [large, , middle, , small] = [3, 0.125, 2, 0.125, 1, 0.125].map(allocate) as Part[];
    const places = [large!, middle!, small!].map(addressOf);
    for (const part of [large!, middle!, small!]) regions.free(part);
    expect([1, 1.75, 2.5].map((mebi) => addressOf(allocate(mebi)))).toEqual(places.reverse());
  });

  it("of one size begin each at another place of a page", () => {
    const { regions } = watched();
    for (const bytes of [100_032, MEBI, 4 * MEBI]) {
      const parts = Array.from({ length: 5 }, () => regions.allocate(staggeredBytes(bytes))!);
      expect(new Set(parts.map((part) => addressOf(part) % 4096)).size).toBe(5);
    }
  });

  it("begin in the first page of a huge one where they are first of a region", () => {
    const { allocate } = watched();
    for (const mebi of [5, 300, 300]) expect(addressOf(allocate(mebi)) % (2 * MEBI)).toBeLessThan(4096);
  });

  it("ask for no buffer and no page in a step like the one before", () => {
    const { regions, allocate, gone } = watched();
    const step = () => {
      const places: number[] = [];
      let live: Part[] = [];
      for (const mebi of [40, 3, 17, 9, 33, 5, 21]) {
        live.push(allocate(mebi));
        places.push(addressOf(live.at(-1)!));
        if (live.length === 4) {
          for (const part of live) regions.free(part);
          live = [];
        }
      }
      for (const part of live) regions.free(part);
      return places;
    };
    step();
    const second = step();
    const before = gone();
    expect(step()).toEqual(second);
    expect(gone()).toBe(before);
  });

  it("that are free keep pages only as long as these add nothing to what lived at once", () => {
    const { regions, allocate, gone } = watched();
    const first = [40, 10, 40, 10].map(allocate);
    regions.free(first[0]!);
    regions.free(first[2]!);
    expect(gone()).toBe(0);
    allocate(60); // 80 are free, 20 live, and 100 lived at once
    expect(gone()).toBeGreaterThanOrEqual(40 + 40 - 20);
    expect(gone()).toBeLessThan(40 + 40 - 20 + 5);
  });

  it("that were joined count with the pages of all", () => {
    const { regions, allocate, gone } = watched();
    for (const part of [100, 100].map(allocate)) regions.free(part);
    for (const part of [50, 50].map(allocate)) regions.free(part);
    allocate(120); // 200 are free, and 200 lived at once
    expect(gone()).toBeGreaterThanOrEqual(120);
  });

  it("that are free keep a GiB of pages at most", () => {
    const { regions, allocate, released, dropped, gone } = watched();
    const parts = [300, 300, 300, 300].map(allocate);
    for (const part of parts.slice(0, 3)) regions.free(part);
    expect(gone()).toBe(0);
    regions.free(parts[3]!);
    expect(dropped).toEqual([]);
    expect(released).toEqual([{ address: addressOf(parts[0]!) + 124 * MEBI, bytes: 176 * MEBI }]);
  });

  it("go back as whole regions where the system takes no pages from the middle of a buffer", () => {
    const { regions, allocate, dropped } = watched({ releasePages: undefined });
    const parts = [300, 300, 300, 300].map(allocate);
    for (const part of parts) regions.free(part);
    expect(dropped).toEqual([]); // 176 MiB too many, which no region's size fits
    regions.clear();
    expect(new Set(dropped)).toEqual(new Set(parts.map(({ region }) => region.view)));
  });
});
