/** Random training programs, in every mode on every device. `OPT_PROGRAM='{...}'` tries the one that a failure has printed. */
import { campaign, kindsOf, newReport, type Program, triesAll, tryProgram } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { setUp } from "./setup";

const given = process.env.OPT_PROGRAM;

describe.runIf(given === undefined)("programs do the same on every device, compiled, and saved and resumed", () => {
  it.for([
    { devices: ["js", "wasm", "cpu"], programs: triesAll ? 200 : 24 },
    { devices: ["js", "webgpu"], programs: triesAll ? 20 : 3 },
    // New ones in each run: a failure prints the program, and its seed.
    { devices: ["js", "wasm", "cpu"], programs: 3, first: Date.now() % 2 ** 31 },
  ])("$programs on $devices", { timeout: 600_000 }, async ({ devices, programs, first = 1 }, { skip }) => {
    const opened = await setUp(...devices);
    if (typeof opened === "string") return skip(opened);
    const report = await campaign(opened, { first, isOver: (done) => done >= programs });
    expect(report.programs).toBe(programs);
    if (first > 1) return;
    // Many must be replayed, and most get to their end, of which a few programs say nothing: else nothing was compared.
    expect(report.replayed).toBeGreaterThan(programs / 5);
    const rejected = Object.values(report.rejected).reduce((a, b) => a + b, 0);
    if (programs >= 100) expect(rejected).toBeLessThan(programs / 10);
  });
});

it.runIf(given !== undefined)("the given program", async () => {
  const report = newReport();
  for (const device of ["wasm", "cpu", "webgpu"]) {
    const opened = await setUp("js", device);
    if (typeof opened === "string") continue;
    const program = JSON.parse(given!) as Program;
    for (const kind of kindsOf(program)) await tryProgram(program, { ...opened, thorough: true }, report, kind);
  }
  expect(report.programs).toBeGreaterThan(0);
});
