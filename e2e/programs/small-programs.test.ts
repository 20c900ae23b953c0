/**
 * Small programs beside their interpretation in float64: eager and compiled, on every device. Some seeds are the same in every run, and some are new.
 * OPT_PROGRAMS of them from seed OPT_PROGRAMS_FIRST on are a longer campaign.
 */
import {
  campaign,
  countFeatures,
  generateSmall,
  newReport,
  programsOfFeatures,
  SMALL,
  triesAll,
  tryProgram,
} from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { setUp } from "./setup";

const { OPT_PROGRAM, OPT_PROGRAMS, OPT_PROGRAMS_FIRST } = process.env;
const fresh = Number(OPT_PROGRAMS_FIRST ?? Date.now() % 2 ** 31);
/** The same in every run. */
const fixed = Array.from({ length: triesAll ? 2000 : 400 }, (_, i) => generateSmall(1 + i));

describe.runIf(OPT_PROGRAM === undefined)("small programs do what their interpretation says", () => {
  // Each on js and on one of two others; with --full on all.
  const sets = [
    { devices: ["js", "wasm"], programs: fixed.filter((_, i) => triesAll || i % 2 === 0) },
    { devices: ["js", "cpu"], programs: fixed.filter((_, i) => triesAll || i % 2 === 1) },
    // It is slow where software stands for it.
    { devices: ["js", "webgpu"], programs: triesAll ? fixed.slice(0, 300) : programsOfFeatures(fixed, 1) },
  ];
  it.for(sets)("$programs.length fixed ones on $devices", async ({ devices, programs }, { skip }) => {
    const opened = await setUp(...devices);
    if (typeof opened === "string") return skip(opened);
    const report = newReport();
    for (const program of programs) await tryProgram(program, opened, report, SMALL);
    // Few are rejected, and many calls are replayed: else little was compared.
    const rejected = Object.values(report.rejected).reduce((a, b) => a + b, 0);
    expect(rejected).toBeLessThan(Math.max(programs.length / 4, 5));
    expect(report.replays).toBeGreaterThan(programs.length / 3);
  });

  it.for([
    { devices: ["js", "wasm", "cpu"], more: Number(OPT_PROGRAMS ?? 100) },
    { devices: ["js", "webgpu"], more: Number(OPT_PROGRAMS ?? 10) },
  ])(`$more new ones on $devices from seed ${fresh}`, async ({ devices, more }, { skip }) => {
    const opened = await setUp(...devices);
    if (typeof opened === "string") return skip(opened);
    await campaign(opened, { kind: SMALL, first: fresh, isOver: (done) => done >= more });
  });

  it("have each place where faults hide several times", () => {
    expect(Object.entries(countFeatures(fixed)).filter(([, count]) => count < 4)).toEqual([]);
  });
});
