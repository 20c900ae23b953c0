/** Binaries of another version would read commands as something else. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { platformName } from "@opt/core/backend";
import { expectCode } from "@opt/testkit";
import { afterAll, expect, it } from "vitest";
import { commandFormat } from "./commands";
import { loadAddon } from "./load-addon";

const folder = mkdtempSync(join(tmpdir(), "opt-addon-"));
afterAll(() => rmSync(folder, { recursive: true }));

it.each([
  ["none", "{}", "DEVICE_UNAVAILABLE"],
  ["an older", `{ commandFormat: () => ${commandFormat() - 1} }`, "DEVICE_UNAVAILABLE"],
] as const)("rejects a binary of %s format", (name, exports, code) => {
  const path = join(folder, `${name}.cjs`);
  writeFileSync(path, `module.exports = ${exports};`);
  expectCode(code, () => loadAddon(platformName(), path));
});

it("says how to build a missing one in a clone", () => {
  const inClone = expect.stringMatching(
    /^\[cpu\] @opt\/kernels-cpu-vax is not installed\. .* In a clone, run npx nx native native-cpu\.$/,
  );
  expect(() => loadAddon("vax")).toThrow(expect.objectContaining({ code: "DEVICE_UNAVAILABLE", message: inClone }));
});

it("takes one of its own format", () => {
  const path = join(folder, "same.cjs");
  writeFileSync(path, `module.exports = { commandFormat: () => ${commandFormat()} };`);
  expect(loadAddon(platformName(), path).commandFormat()).toBe(commandFormat());
});
