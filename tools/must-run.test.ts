import { existsSync, readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { mustRun, notRun } from "./must-run.mjs";

const all = Object.fromEntries(mustRun.flatMap(({ files }) => files.map((file) => [file, 1])));

it("names files that exist", () => {
  expect(Object.keys(all).filter((file) => !existsSync(file))).toEqual([]);
});

it("names a contract of every device", () => {
  const devices = readdirSync("packages").filter((name) => name.startsWith("kernels-"));
  const named = (name: string) => Object.keys(all).some((file) => file.startsWith(`packages/${name}/src/contract.`));
  expect(devices.filter((name) => !named(name))).toEqual([]);
});

it("is content with a run of everything", () => expect(notRun(all, [])).toEqual([]));

it.each(mustRun.filter(({ here = true }) => here))("misses $what", ({ what, files, needs }) => {
  const ran = { ...all, [files[0]!]: 0 };
  expect(notRun(ran, [])).toEqual([`${what} (nothing passed in ${files[0]})`]);
  for (const tool of needs) expect(notRun(ran, [tool])).toEqual([]);
});
