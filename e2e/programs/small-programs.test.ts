/**
 * Small programs beside their interpretation in float64: eager and compiled, on every device. Some seeds are the same in every run, and some are new.
 * `OPT_SMALL_PROGRAM='{...}'` tries the one that a failure has printed; OPT_PROGRAMS of them, from seed OPT_PROGRAMS_FIRST, are a longer campaign.
 */
import { campaign, newReport, type Program, SMALL, triesAll, tryProgram } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { setUp } from "./setup";

const { OPT_SMALL_PROGRAM, OPT_PROGRAMS, OPT_PROGRAMS_FIRST } = process.env;
const fresh = Number(OPT_PROGRAMS_FIRST ?? Date.now() % 2 ** 31);
const TABLE = [
  { devices: ["js", "wasm", "cpu"], fixed: triesAll ? 2000 : 300, more: Number(OPT_PROGRAMS ?? 100) },
  { devices: ["js", "webgpu"], fixed: triesAll ? 300 : 40, more: Number(OPT_PROGRAMS ?? 10) },
];

describe.runIf(OPT_SMALL_PROGRAM === undefined)("small programs do what their interpretation says", () => {
  const seeds = TABLE.flatMap(({ devices, fixed, more }) => [
    { devices, first: 1, programs: fixed },
    { devices, first: fresh, programs: more },
  ]);
  it.for(seeds)("$programs on $devices from seed $first", async ({ devices, first, programs }, { skip }) => {
    const opened = await setUp(...devices);
    if (typeof opened === "string") return skip(opened);
    const report = await campaign(opened, { kind: SMALL, first, isOver: (done) => done >= programs });
    // Few are rejected, and many calls are replayed: else little was compared.
    const rejected = Object.values(report.rejected).reduce((a, b) => a + b, 0);
    expect(rejected).toBeLessThan(Math.max(programs / 4, 5));
    expect(report.replays).toBeGreaterThan(programs / 2);
  });
});

it.runIf(OPT_SMALL_PROGRAM !== undefined)("the given program", async () => {
  const report = newReport();
  for (const device of ["wasm", "cpu", "webgpu"]) {
    const opened = await setUp("js", device);
    if (typeof opened === "string") continue;
    await tryProgram(JSON.parse(OPT_SMALL_PROGRAM!) as Program, { ...opened, thorough: true }, report, SMALL);
  }
  expect(report.programs).toBeGreaterThan(0);
});
