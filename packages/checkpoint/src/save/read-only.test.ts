/** A disk that really cannot be written: the system itself says so, not a stand-in. */
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { sampleTensors, scratchFolder } from "../../testing/fixtures";
import { loadCheckpoint } from "../operations";
import { singleProcess } from "./ranks/communicator";
import { saveCheckpoint } from "./save";

const folder = scratchFolder();
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** Nothing is forbidden to root: the rest of a test is done as nobody. */
const withoutPower = () => isRoot && process.seteuid!(NOBODY);
afterEach(() => {
  if (isRoot) process.seteuid!(0);
  chmodSync(folder.path, 0o755);
});

const save = (path: string, step: number, options = {}) =>
  saveCheckpoint(path, { step, tensors: sampleTensors(1) }, options);

const noModes = process.platform === "win32";

describe.skipIf(noModes)(`a folder that may not be written${noModes ? " (skipped: Windows has no modes)" : ""}`, () => {
  it.each([
    ["one process", {}],
    ["async", { async: true }],
    ["overwriting", { overwrite: true }],
    ["a rank", { communicator: singleProcess() }],
  ])("%s: says so; the step that is there stays and is read", async (_, options) => {
    await save(folder.path, 1);
    chmodSync(folder.path, 0o555);
    withoutPower();
    for (const step of [1, 2]) {
      const code = step === 1 && !("overwrite" in options) ? "DUPLICATE" : "IO";
      const message = await expectCode(code, save(folder.path, step, options));
      if (code === "IO") expect(message).toMatch(/permissions/);
    }
    expect((await loadCheckpoint(folder.path)).step).toBe(1);
  });

  it("and no run begins in it", async () => {
    chmodSync(folder.path, 0o555);
    withoutPower();
    expect(await expectCode("IO", save(join(folder.path, "run"), 1))).toMatch(/permissions/);
  });
});
