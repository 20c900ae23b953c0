/** What ptxas said of the kernels when they were built: none may spill registers to memory, or keep anything there. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { builtRules } from "@opt/testkit/built-rules";
import { describe, expect, it } from "vitest";
import { RULE_FORMS, ruleKernelName } from "./generate/write-kernels";

const folder = fileURLToPath(new URL("../../../native/cuda/build/", import.meta.url));
const logs = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".ptxas.log")) : [];
const built = logs.length > 0;

const FUNCTION =
  /Function properties for (\w+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads/g;

describe.skipIf(!built)(`compiled kernels${built ? "" : " (skipped: npx nx native native-cuda compiled none)"}`, () => {
  const properties = logs.flatMap((file) => [...readFileSync(folder + file, "utf8").matchAll(FUNCTION)]);

  it("are all there, the rules in every form", () => {
    const names = new Set(properties.map(([, name]) => name));
    for (const rule of builtRules) for (const form of RULE_FORMS) expect(names).toContain(ruleKernelName(rule, form));
    expect(logs).toHaveLength(10);
  });

  it("spill nothing", () => {
    const bad = properties.filter(([, , , ...spills]) => spills.some((bytes) => bytes !== "0"));
    expect(bad.map(([line]) => line)).toEqual([]);
  });

  /** NVIDIA's sin and cos reduce huge arguments by way of an array. */
  it("keep nothing on a stack but the digits of pi in maps of sin and cos", () => {
    const framed = properties.filter(([, , frame]) => frame !== "0");
    for (const [line, name, frame] of framed)
      expect([line, name!.startsWith("map_"), Number(frame) <= 40]).toEqual([line, true, true]);
    expect(framed.length).toBeLessThanOrEqual(4);
  });
});
