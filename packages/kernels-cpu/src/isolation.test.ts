/** Code of one instruction set must never stand in for another's: the linker may merge only what is not code of a set. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const objects = fileURLToPath(new URL("../../../native/cpu/build/release/CMakeFiles/", import.meta.url));
const reason = !existsSync(objects)
  ? "the kernels were not built here"
  : spawnSync("nm", ["--version"]).status !== 0
    ? "nm is missing"
    : undefined;
const sets = reason === undefined ? readdirSync(objects).filter((name) => name.startsWith("kernels_")) : [];

it.skipIf(reason)(`keeps instruction sets apart${reason ? ` (skipped: ${reason})` : ""}`, () => {
  for (const folder of sets) {
    const set = folder.slice("kernels_".length).replace(".dir", "");
    const files = readdirSync(`${objects}${folder}`, { recursive: true }).filter((name) => String(name).endsWith(".o"));
    expect(files.length).toBeGreaterThan(5);
    const paths = files.map((name) => `${objects}${folder}/${name}`);
    const { stdout } = spawnSync("nm", ["--demangle", "--defined-only", ...paths], {
      encoding: "utf8",
      maxBuffer: 2 ** 28,
    });
    // W: weak code, which the linker merges by name.
    const shared = stdout.split("\n").filter((line) => / W /.test(line) && !line.includes(`::${set}::`));
    expect(shared).toEqual([]);
  }
});
