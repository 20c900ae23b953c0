/** What the machine's own disk does beyond what every store does. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { nodeFileSystem } from "./node-file-system";

const folder = mkdtempSync(join(tmpdir(), "opt-files-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Files without a name that this process holds open. */
const held = () =>
  readdirSync("/proc/self/fd").filter((file) => {
    try {
      return readlinkSync(`/proc/self/fd/${file}`).startsWith(`${folder}/`);
    } catch {
      return false; // it was the listing's own
    }
  });

it("a file takes the name of another, or a new one, and none stays open", async () => {
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  for (const text of ["first", "second"]) {
    writeFileSync(from, text);
    await nodeFileSystem.rename(from, to);
    expect([readFileSync(to, "utf8"), readdirSync(folder)]).toEqual([text, ["to"]]);
  }
  await expect(nodeFileSystem.rename(from, to)).rejects.toMatchObject({ code: "ENOENT" });
  expect(readFileSync(to, "utf8")).toBe("second");
  if (process.platform === "linux") await expect.poll(held, { timeout: 60_000 }).toEqual([]);
});

it.skipIf(process.platform === "win32")("a pipe is replaced as a file is (skipped: Windows has none)", async () => {
  const [from, to] = [join(folder, "file"), join(folder, "pipe")];
  expect(spawnSync("mkfifo", [to]).status).toBe(0);
  writeFileSync(from, "text");
  await nodeFileSystem.rename(from, to);
  expect(readFileSync(to, "utf8")).toBe("text");
});
