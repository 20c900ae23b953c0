import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FaultyFileSystem } from "../../../testing/disks/faulty-file-system";
import { expectCode } from "../../../testing/expect-code";
import { scratchFolder } from "../../../testing/fixtures";
import { localFileSystem } from "../../platform/local";
import { endAttempt, newAttempt } from "../../save/step/owner";
import { writeFolder } from "./write-whole";

const scratch = scratchFolder();
const at = (name: string): string => join(scratch.path, name);
const write = (text: string, options = {}, path = at("out")) =>
  writeFolder(path, options, async (folder) => writeFileSync(join(folder, "file"), text));
const text = () => readFileSync(join(at("out"), "file"), "utf8");

function leave(name: string): void {
  mkdirSync(at(name));
  writeFileSync(join(at(name), "file"), "left");
}

function deadAttempt(): string {
  const attempt = newAttempt();
  endAttempt(attempt);
  return attempt;
}

describe("folders that appear complete or not at all", () => {
  it("sweep what writers that died have left, and leave those alone that are at work", async () => {
    const alive = newAttempt();
    for (const one of [`tmp-${deadAttempt()}`, `tmp-${alive}`, "tmp-mine"]) leave(`out.${one}`);
    await write("new");
    expect([text(), readdirSync(scratch.path).sort()]).toEqual([
      "new",
      ["out", `out.tmp-${alive}`, "out.tmp-mine"].sort(),
    ]);
    leave(`out.old-${deadAttempt()}`);
    await write("newer", { overwrite: true });
    expect([text(), readdirSync(scratch.path).sort()]).toEqual([
      "newer",
      ["out", `out.tmp-${alive}`, "out.tmp-mine"].sort(),
    ]);
    endAttempt(alive);
  });

  it("get back what a writer that died had set aside for a new one", async () => {
    leave(`out.old-${deadAttempt()}`);
    await expectCode("DUPLICATE", write("new"));
    expect([text(), readdirSync(scratch.path)]).toEqual(["left", ["out"]]);
  });

  it("stay what they were where the new one does not get the name", async () => {
    await write("first");
    const fileSystem = new FaultyFileSystem(localFileSystem, { at: 1, only: "rename" });
    await expectCode("IO", write("second", { fileSystem, overwrite: true }));
    expect([text(), readdirSync(scratch.path)]).toEqual(["first", ["out"]]);
  });

  it("may be named with a slash at the end", async () => {
    await write("first");
    await write("second", { overwrite: true }, `${at("out")}/`);
    expect([text(), readdirSync(scratch.path)]).toEqual(["second", ["out"]]);
  });
});
