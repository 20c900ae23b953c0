import { existsSync, readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { mustRun, notRun } from "./must-run.mjs";

const files = mustRun.flatMap(({ files }) => files);
const all = Object.fromEntries(files.map((file) => [file, 1]));

it("names files that exist, and a contract of every device", () => {
  expect(files.filter((file) => !existsSync(file))).toEqual([]);
  const devices = readdirSync("packages").filter((name) => name.startsWith("kernels-"));
  const isNamed = (name: string) => files.some((file) => file.startsWith(`packages/${name}/src/contract.`));
  expect(devices.filter((name) => !isNamed(name))).toEqual([]);
});

it("finds what did not run, and excuses what needs a missing tool", () => {
  expect(notRun(all, [])).toEqual([]);
  for (const { files, needs } of mustRun.filter(({ here = true }) => here)) {
    const ran = { ...all, [files[0]!]: 0 };
    expect(notRun(ran, [])).toEqual([files[0]]);
    for (const tool of needs) expect(notRun(ran, [tool])).toEqual([]);
  }
});
