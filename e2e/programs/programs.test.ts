/** Random training programs, in every mode on every device. `OPT_PROGRAM='{...}'` tries the one that a failure has printed. */
import { campaign, newReport, type Program, statementsOf, tryProgram } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { court } from "./court";

/** WGSL has no 64-bit floats, in which integers are computed, and the equal largest counted. */
function isWithoutIntegers(program: Program): boolean {
  const integers = program.leaves.filter(({ dtype }) => dtype === "i32" || dtype === "u8").map(({ id }) => id);
  const isInteger = (operand: string | number) => integers.includes(String(operand));
  return !statementsOf(program).some(
    (one) => one.do === "op" && (one.op === "max" || (/^(add|mul)$/.test(one.op) && one.of.some(isInteger))),
  );
}

const given = process.env.OPT_PROGRAM;

describe.runIf(given === undefined)("programs do the same on every device, recorded, and saved and resumed", () => {
  it.for([
    { devices: ["js", "wasm", "cpu"], programs: 2000 },
    { devices: ["js", "webgpu"], programs: 40 },
  ])("$programs on $devices", async ({ devices, programs }, { skip }) => {
    const opened = await court(...devices);
    if (typeof opened === "string") return skip(opened);
    const accepts = devices.includes("webgpu") ? isWithoutIntegers : undefined;
    const report = await campaign(opened, { accepts, isOver: (done) => done >= programs });
    expect(report.programs).toBe(programs);
    // Most must get to their end, and many be replayed: else nothing was compared.
    const refused = Object.values(report.refused).reduce((a, b) => a + b, 0);
    expect(refused).toBeLessThan(programs / 10);
    expect(report.replayed).toBeGreaterThan(programs / 4);
  });
});

it.runIf(given !== undefined)("the given program", async () => {
  for (const device of ["wasm", "cpu", "webgpu"]) {
    const opened = await court("js", device);
    if (typeof opened !== "string")
      await tryProgram(JSON.parse(given!) as Program, { ...opened, thorough: true }, newReport());
  }
});
