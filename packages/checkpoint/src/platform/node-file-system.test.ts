import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { registerHostIo } from "@opt/core";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { randomBytes } from "../../testing/fixtures";
import { pages } from "./node-direct";
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

describe.skipIf(process.platform === "win32")("links (skipped: Windows has none of these)", () => {
  const at = (name: string) => join(folder, name);

  it("are listed as what they lead to", async () => {
    mkdirSync(at("linked/folder"), { recursive: true });
    writeFileSync(at("linked/file"), "");
    for (const name of ["file", "folder", "nowhere", "itself"])
      symlinkSync(name === "itself" ? "to-itself" : name, at(`linked/to-${name}`));
    const kinds = Object.fromEntries((await nodeFileSystem.list(at("linked"))).map(({ name, kind }) => [name, kind]));
    expect(kinds).toEqual({
      file: "file",
      folder: "folder",
      "to-file": "file",
      "to-folder": "folder",
      "to-itself": "other",
      "to-nowhere": "other",
    });
  });
});

/** Whether files here can be written past the system's cache. */
function takesDirect(): boolean {
  if (constants.O_DIRECT === undefined) return false;
  try {
    const path = join(folder, "direct");
    closeSync(openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_DIRECT));
    rmSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Sees how long what is handed to the system is. */
async function handles() {
  const handle = await promises.open(folder, "r");
  const prototype = Object.getPrototypeOf(handle) as { write: (...args: unknown[]) => unknown };
  await handle.close();
  const { write } = prototype;
  const lengths: number[] = [];
  prototype.write = function (this: unknown, ...args) {
    lengths.push(args[2] as number);
    return write.apply(this, args);
  };
  const restore = () => {
    prototype.write = write;
  };
  return { lengths, restore };
}

/** How many descriptors of files in the folder are for writing past the cache. */
const direct = () =>
  readdirSync("/proc/self/fd").filter((file) => {
    try {
      if (!readlinkSync(`/proc/self/fd/${file}`).startsWith(`${folder}/`)) return false;
      const [, flags] = /flags:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${file}`, "utf8"))!;
      return (Number.parseInt(flags!, 8) & constants.O_DIRECT) !== 0;
    } catch {
      return false;
    }
  }).length;

describe("long writes", () => {
  const PAGE = 4096;
  const FROM = 4 << 20;
  const path = join(folder, "long");
  const memory = pages(1 << 20);
  memory.set(randomBytes(memory.length, 3));

  /** Writes pieces of the memory one after the other from `start` on, to a file that may have its length from the start; what the file should be then. */
  async function write(
    start: number,
    pieces: readonly (readonly [begin: number, length: number])[],
    source = memory,
    byteLength?: number,
  ) {
    const file = await nodeFileSystem.open(path, "create", byteLength);
    const wanted: Uint8Array[] = [];
    let position = start;
    try {
      for (const [begin, length] of pieces) {
        const piece = source.subarray(begin, begin + length);
        await file.write(piece, position);
        // What was never written before it are zeros; of nothing there is no file.
        if (piece.length > 0) wanted.push(new Uint8Array(wanted.length > 0 ? 0 : start), piece);
        position += piece.length;
      }
      const written = constants.O_DIRECT === undefined ? 0 : direct();
      await file.finish();
      return { written, wanted: Buffer.concat(wanted) };
    } finally {
      await file.close();
    }
  }

  it.each([0, 1, PAGE - 1, PAGE, PAGE + 1, 16 * PAGE - 1, 16 * PAGE, 16 * PAGE + 1, (1 << 20) - 1, 1 << 20])(
    "of %d bytes arrive, before and behind the first bytes of a file, wherever their pages lie",
    async (length) => {
      for (const start of [0, FROM - PAGE, FROM, FROM + 1, FROM + PAGE - 1]) {
        for (const begin of [0, 1, PAGE - 1]) {
          const { wanted } = await write(start, [[begin, length]]);
          expect(Buffer.compare(readFileSync(path), wanted), `${length} bytes at ${start} from ${begin}`).toBe(0);
        }
      }
    },
  );

  it("of any lengths, one after the other, are the bytes that were given", async () => {
    const piece = fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 300_000 }));
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 2 * PAGE }), fc.array(piece, { maxLength: 6 }), async (before, pieces) => {
        let position = FROM - PAGE + before;
        const start = position;
        // Mostly from where their pages are the file's, as buffers are filled.
        const placed = pieces.map(([kind, length]) => {
          const begin = kind === 0 ? 7 : position % PAGE;
          position += length;
          return [begin, length] as const;
        });
        const { wanted } = await write(start, placed);
        expect(Buffer.compare(readFileSync(path), wanted)).toBe(0);
      }),
      { seed: 11, numRuns: 60 },
    );
  });

  it.skipIf(!takesDirect())(
    "pass by the cache where memory and file have their pages in common, and only there",
    async () => {
      const about = async (start: number, begin: number, length: number) =>
        (await write(start, [[begin, length]])).written;
      expect(await about(FROM, 0, 1 << 19)).toBe(1);
      expect(await about(FROM + 5, 5, 1 << 19)).toBe(1);
      for (const [start, begin, length] of [
        [FROM + 5, 6, 1 << 19],
        [0, 0, 1 << 19],
        [FROM - PAGE - (1 << 19), 0, 1 << 19],
        [FROM, 0, 15 * PAGE],
      ] as const)
        expect(await about(start, begin, length)).toBe(0);
      expect((await write(FROM, [[0, 1 << 19]], memory.slice())).written).toBe(0);
      // Of a file that will be large also what comes first.
      for (const [byteLength, written] of [
        [FROM, 1],
        [FROM - 1, 0],
      ] as const)
        expect((await write(PAGE, [[0, 1 << 19]], memory, byteLength)).written).toBe(written);
      expect(held()).toEqual([]);
    },
  );

  it("that follow each other in memory and in the file, and are given together, are one", async () => {
    const file = await nodeFileSystem.open(path, "create", FROM + (1 << 20));
    const seen = await handles();
    const pieces = [
      [0, 256, 0],
      [256, 128, 256],
      [384, 64, 384],
      [448, 64, 512], // leaves a hole in the file
      [600, 64, 576], // and in the memory
    ].map((kibs) => kibs.map((kib) => kib * 1024) as [begin: number, length: number, position: number]);
    const piece = ([begin, length]: readonly number[]) => memory.subarray(begin, begin! + length!);
    await Promise.all(pieces.map((each) => file.write(piece(each), FROM + each[2])));
    await file.finish();
    await file.close();
    seen.restore();
    const written = readFileSync(path);
    for (const each of pieces) {
      const there = written.subarray(FROM + each[2], FROM + each[2] + each[1]);
      expect(Buffer.compare(there, piece(each)), `${each}`).toBe(0);
    }
    if (takesDirect()) expect(seen.lengths.map((length) => length / 1024)).toEqual([448, 64, 64]);
  });

  it("arrive where the memory's pages are no pages to the system", async () => {
    const odd = (bytes: number) => new Uint8Array(new ArrayBuffer(bytes + 1), 1);
    registerHostIo(() => ({ pages: odd }));
    const source = pages(1 << 20);
    source.set(memory);
    const { wanted } = await write(
      FROM,
      [
        [0, 1 << 20],
        [0, 5000],
      ],
      source,
    );
    registerHostIo(() => ({}));
    expect(Buffer.compare(readFileSync(path), wanted)).toBe(0);
  });

  it.each([
    ["EINVAL", undefined],
    ["EMFILE", undefined],
    ["EACCES", "EACCES"],
  ])("where the second opening says %s", async (code, thrown) => {
    const { open } = promises;
    promises.open = (async (file, flags, mode) => {
      if (Number(flags) & constants.O_DIRECT) throw Object.assign(new Error(code), { code });
      return open(file, flags, mode);
    }) as typeof open;
    syncBuiltinESMExports();
    try {
      const writing = write(FROM, [[0, 1 << 20]]);
      if (thrown !== undefined && constants.O_DIRECT !== undefined) {
        await expect(writing).rejects.toMatchObject({ code: thrown });
        return;
      }
      const { wanted } = await writing;
      expect(Buffer.compare(readFileSync(path), wanted)).toBe(0);
    } finally {
      promises.open = open;
      syncBuiltinESMExports();
    }
  });
});
