// Rounding at random: to one of the two neighbours, with the exact value as mean, by bits that belong to the element and the step.
import { describe, expect, it } from "vitest";
import { narrow, widen } from "../values/half";
import { drawOf, keysOf, ROUND, withoutDraws } from "./rounding";

const FORMATS = ["bf16r", "f16r"] as const;

describe.each(FORMATS)("%s", (format) => {
  const dtype = withoutDraws(format);
  const round = ROUND[format];
  const value = (stored: number) => widen(Uint16Array.of(stored), dtype)[0]!;

  it("keeps what 16 bits hold, whatever is drawn", () => {
    const changed = Array.from({ length: 0x10000 }, (_, stored) => stored).filter((stored) => {
      const exact = value(stored);
      return [0, 1, 0x7fff, 0xffff].some((draw) => !Object.is(value(round(exact, draw)), exact));
    });
    expect(changed).toEqual([]);
  });

  it.each([1 + 2 ** -12, -3.1, 1e-3, 6e-6, -1.3e-6, 60001.7])("has the mean of all draws at %d", (number) => {
    const x = Math.fround(number);
    const results = new Map<number, number>();
    for (let draw = 0; draw < 0x10000; draw++) {
      const stored = round(x, draw);
      results.set(stored, (results.get(stored) ?? 0) + 1);
    }
    const [low, high] = [...results.keys()].sort((a, b) => a - b) as [number, number];
    expect([results.size, high - low]).toEqual([2, 1]);
    const mean = [...results].reduce((sum, [stored, count]) => sum + (value(stored) * count) / 0x10000, 0);
    const gap = Math.abs(value(high) - value(low));
    expect(Math.abs(mean - x)).toBeLessThanOrEqual(gap / 0x10000);
  });

  it("rounds down where 0 is drawn, and is infinite only beyond its largest number", () => {
    const largest = value(dtype === "bf16" ? 0x7f7f : 0x7bff);
    const above = Math.fround(largest * 1.0001);
    expect([round(above, 0), round(above, 0xffff)].map(value)).toEqual([largest, Infinity]);
    expect([Infinity, -Infinity, 1e39].map((x) => value(round(Math.fround(x), 0xffff)))).toEqual([
      Infinity,
      -Infinity,
      Infinity,
    ]);
    expect(value(round(-0, 0xffff))).toBe(-0);
    expect(narrow([Number.NaN], dtype)[0]! & 0x7fff).toBe(round(Number.NaN, 5) & 0x7fff);
  });
});

/** Standard deviations between counts in 256 or 1024 cells and equal ones. */
function deviation(count: number, cells: number, cellOf: (i: number) => number): number {
  const counts = new Float64Array(cells);
  for (let i = 0; i < count; i++) counts[cellOf(i)]!++;
  const expected = count / cells;
  const chi = counts.reduce((sum, n) => sum + (n - expected) ** 2 / expected, 0);
  return Math.abs(chi - cells + 1) / Math.sqrt(2 * (cells - 1));
}

const COUNT = 50_000;
const NEXT = 2 ** 32;

describe.each([0, 1, 2 ** 40 + 3])("draws of seed %d", (seed) => {
  const keys = Array.from({ length: COUNT + 1 }, (_, step) => keysOf(seed, step + 1));
  const pair = (a: number, b: number) => (a >> 11) * 32 + (b >> 11);

  it.each<[string, number, (i: number) => number]>([
    ["elements", 256, (i) => drawOf(0, i, keys[3]!) >> 8],
    ["steps", 256, (i) => drawOf(NEXT, 7, keys[i]!) >> 8],
    ["low bits", 256, (i) => drawOf(0, i, keys[5]!) & 255],
    ["neighbours", 1024, (i) => pair(drawOf(0, i, keys[5]!), drawOf(0, i + 1, keys[5]!))],
    ["neighbours over steps", 1024, (i) => pair(drawOf(0, 10, keys[i]!), drawOf(0, 11, keys[i]!))],
    ["steps that follow", 1024, (i) => pair(drawOf(0, 10, keys[i]!), drawOf(0, 10, keys[i + 1]!))],
    ["parameters", 1024, (i) => pair(drawOf(NEXT, i, keys[9]!), drawOf(2 * NEXT, i, keys[9]!))],
    ["parameters over steps", 1024, (i) => pair(drawOf(0, 3, keys[i]!), drawOf(NEXT, 3, keys[i]!))],
    ["seeds", 1024, (i) => pair(drawOf(0, 3, keys[i]!), drawOf(0, 3, keysOf(seed + 1, i + 1)))],
  ])("of %s are equally often everything", (_, cells, cellOf) => {
    expect(deviation(COUNT, cells, cellOf)).toBeLessThan(4);
  });
});

it("takes a place apart into the parameter and what lies before in it", () => {
  const keys = keysOf(5, 1);
  expect(drawOf(NEXT + 40, 2, keys)).toBe(drawOf(NEXT, 42, keys));
  expect(drawOf(2 * NEXT - 1, 1, keys)).toBe(drawOf(NEXT, 0, keys));
});
