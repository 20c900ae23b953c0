/**
 * Small programs beside their interpretation in float64: eager and compiled, on every device. Some seeds are the same in every run, and some are new.
 * OPT_PROGRAMS of them from seed OPT_PROGRAMS_FIRST on are a longer campaign.
 */
import { campaign, countFeatures, generateSmall, SMALL, triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { setUp } from "./setup";

const { OPT_PROGRAM, OPT_PROGRAMS, OPT_PROGRAMS_FIRST } = process.env;
const fresh = Number(OPT_PROGRAMS_FIRST ?? Date.now() % 2 ** 31);
const FIXED = 400;
const TABLE = [
  { devices: ["js", "wasm", "cpu"], fixed: triesAll ? 2000 : FIXED, more: Number(OPT_PROGRAMS ?? 100) },
  { devices: ["js", "webgpu"], fixed: triesAll ? 300 : 40, more: Number(OPT_PROGRAMS ?? 10) },
];

describe.runIf(OPT_PROGRAM === undefined)("small programs do what their interpretation says", () => {
  const seeds = TABLE.flatMap(({ devices, fixed, more }) => [
    { devices, first: 1, programs: fixed },
    { devices, first: fresh, programs: more },
  ]);
  it.for(seeds)("$programs on $devices from seed $first", async ({ devices, first, programs }, { skip }) => {
    const opened = await setUp(...devices);
    if (typeof opened === "string") return skip(opened);
    const report = await campaign(opened, { kind: SMALL, first, isOver: (done) => done >= programs });
    if (first !== 1) return; // a few new ones may be of any kind
    // Few are rejected, and many calls are replayed: else little was compared.
    const rejected = Object.values(report.rejected).reduce((a, b) => a + b, 0);
    expect(rejected).toBeLessThan(Math.max(programs / 4, 5));
    expect(report.replays).toBeGreaterThan(programs / 3);
  });
});

it("each place where faults hide is in several of the fixed programs", () => {
  const counts = countFeatures(Array.from({ length: FIXED }, (_, i) => generateSmall(1 + i)));
  expect(Object.entries(counts).filter(([, count]) => count < 4)).toEqual([]);
});
