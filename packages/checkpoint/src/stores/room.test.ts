/** Where the system lets a process have only a few files open. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { scratchFolder } from "../testing/fixtures";
import { buildProgram } from "../testing/programs/build-program";
import { FilePool, withRoom } from "./file-pool";
import type { FileSystem } from "./file-system";

const scratch = scratchFolder();

/** A system that has so many files open at most, of which each takes a while to open. */
function system(limit: number) {
  let open = 0;
  const refused = () => Object.assign(new Error("too many open files"), { code: "EMFILE" });
  const take = async () => {
    await new Promise(setImmediate);
    if (open >= limit) throw refused();
    open++;
    return { close: async () => void open-- };
  };
  return { open: () => withRoom(take) } as unknown as FileSystem;
}

/** What is done with a file takes a while, too. */
const use = (pool: FilePool, name: number) =>
  pool.use(`${name}`, async () => {
    await new Promise(setImmediate);
    return name;
  });

it.each([
  [1, 1],
  [1, 7],
  [3, 20],
  [20, 20],
])("%i open at most, %i are used, of one pool and of two, at once and again", async (limit, count) => {
  const names = [...Array(count).keys()];
  const disk = system(limit);
  const [first, second] = [new FilePool(disk, "read"), new FilePool(disk, "update")];
  expect(await Promise.all(names.map((name) => use(first, name)))).toEqual(names);
  const both = names.flatMap((name) => [use(first, name), use(second, name)]);
  expect(await Promise.all(both)).toEqual(names.flatMap((name) => [name, name]));
  const other = await disk.open("", "create");
  expect(await Promise.all(names.slice(limit > 1 ? 0 : count).map((name) => use(first, name)))).toHaveLength(
    limit > 1 ? count : 0,
  );
  await other.close();
  await first.close();
  await second.close();
});

it("what nobody can make room for is refused", async () => {
  const pool = new FilePool(system(0), "read");
  const uses = await Promise.allSettled([use(pool, 1), use(pool, 2)]);
  for (const { status, reason } of uses as PromiseRejectedResult[])
    expect([status, reason.code]).toEqual(["rejected", "EMFILE"]);
  expect(await use(new FilePool(system(1), "read"), 1)).toBe(1);
});

it.skipIf(process.platform === "win32")(
  "100 ranks are saved, read and written anew where 64 files may be open (skipped: Windows has no such limit)",
  async () => {
    const program = `${scratch.path}/few-files.mjs`;
    writeFileSync(program, await buildProgram("./few-files.ts"));
    const command = `ulimit -n 64 && exec "$0" "${program}" "${scratch.path}" 100`;
    const { stdout, stderr } = spawnSync("bash", ["-c", command, process.execPath], { encoding: "utf8" });
    expect([stdout, stderr]).toEqual(["whole.safetensors true\nanew true\nckpt true\n", ""]);
  },
);
