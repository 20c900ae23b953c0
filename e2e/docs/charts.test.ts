/** The benchmark's picture, as README and site show it. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

it.each(["light", "dark"])("the %s picture has a labelled, linear axis: 52 times looks 52 times", (scheme) => {
  const svg = readFileSync(new URL(`../../docs/pictures/benchmark-${scheme}.svg`, import.meta.url), "utf8");
  const found = (pattern: RegExp) => [...svg.matchAll(pattern)].map(([, each]) => each!);
  expect(found(/class="axis"[^>]*>([^<]*)</g)).toEqual(["milliseconds a step"]);
  const ticks = found(/text-anchor="middle" class="tick">([\d.]+)</g).map(Number);
  expect(ticks[0]).toBe(0);
  expect(ticks.length).toBeGreaterThan(3);
  const widths = found(/<rect[^>]* width="([\d.]+)"/g).map(Number);
  const times = found(/>([\d.]+) ms, /g).map(Number);
  expect(times.length).toBeGreaterThan(4);
  const scale = Math.max(...widths) / Math.max(...times);
  // Times are written with three digits.
  for (const [i, time] of times.entries()) expect(Math.abs(widths[i]! / scale - time)).toBeLessThan(0.05 + time / 100);
  expect(svg).toContain(`style="color-scheme:${scheme}"`);
});
