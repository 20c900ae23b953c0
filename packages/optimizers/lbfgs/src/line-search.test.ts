/** PyTorch's line searches, along lines with waves: each branch of them. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { strongWolfe } from "./line-search";

const stored: number[][] = JSON.parse(readFileSync(new URL("../testing/line-search.json", import.meta.url), "utf8"));

it.each(stored)("slant %d, bowl %d, height %d, pace %d, phase %d, from %d", async (...row) => {
  const [slant, bowl, height, pace, phase, first, size, toleranceChange, maxIterations, t, count] = row as [
    ...[number, number, number, number, number, number, number, number, number, number, number],
  ];
  const at = async (t: number) => ({
    t,
    loss: slant * t + bowl * t * t + height * Math.sin(pace * t + phase),
    slope: slant + 2 * bowl * t + height * pace * Math.cos(pace * t + phase),
  });
  const { found, evaluations } = await strongWolfe(await at(0), first, at, { size, toleranceChange, maxIterations });
  expect([found.t / t, evaluations]).toEqual([expect.closeTo(1, 9), count]);
});
