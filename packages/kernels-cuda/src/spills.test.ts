/** What ptxas said of the kernels when they were built: no rule may spill registers to memory. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { builtRules } from "./generate/rules";
import { RULE_FORMS, ruleKernelName } from "./generate/write-kernels";

const log = fileURLToPath(new URL("../../../native/cuda/build/rules.fatbin.ptxas.log", import.meta.url));
const built = existsSync(log);

describe.skipIf(!built)(`rule kernels${built ? "" : " (skipped: nvcc compiled none here)"}`, () => {
  const text = built ? readFileSync(log, "utf8") : "";
  const properties = [
    ...text.matchAll(
      /Function properties for (\w+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads/g,
    ),
  ];

  it("are all there, in every form", () => {
    const names = new Set(properties.map(([, name]) => name));
    for (const rule of builtRules) for (const form of RULE_FORMS) expect(names).toContain(ruleKernelName(rule, form));
  });

  it("spill nothing and keep nothing on a stack", () => {
    const bad = properties.filter(([, , ...bytes]) => bytes.some((count) => count !== "0")).map(([line]) => line);
    expect(bad).toEqual([]);
  });
});
