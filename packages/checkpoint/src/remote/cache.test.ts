import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it, vi } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { safetensorsFile } from "../../testing/files/made-files";
import { randomBytes, scratchFolder } from "../../testing/fixtures";
import { webServer } from "../../testing/web-server";
import { crc32 } from "../format/crc32";
import { loadCheckpoint } from "../operations";
import { localFileSystem } from "../platform/local";
import { httpObjects } from "../stores/http-objects";
import { memoryFileSystem } from "../stores/memory";
import { cached } from "./cache";

const held = webServer();
const folder = scratchFolder();

/** Three blocks and a part of one. */
const A = randomBytes(3_400_000, 1);

function serve(a = A): string {
  const small = { name: "b", shape: [4], data: randomBytes(16, 2) };
  held.web.files.set("/model.safetensors", safetensorsFile([{ name: "a", shape: [850, 1000], data: a }, small]));
  return `${held.web.url}/model.safetensors`;
}

const load = async (url: string, options: { cache?: string | boolean; cacheLimit?: number; names?: string[] } = {}) => {
  held.web.sent = 0;
  const { tensors } = await loadCheckpoint(url, { cache: folder.path, as: "plain", ...options });
  return crc32(tensors.a?.data ?? new Uint8Array(0));
};

/** The files of blocks. */
const blocks = () =>
  readdirSync(folder.path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "used")
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();

it("a second open fetches no bytes of the file", async () => {
  const url = serve();
  expect(await load(url)).toBe(crc32(A));
  expect([held.web.sent, blocks().length]).toEqual([held.web.files.get("/model.safetensors")!.length, 4]);
  expect([await load(url), held.web.sent]).toEqual([crc32(A), 0]);
});

it("keeps only the blocks of what is read", async () => {
  const url = serve();
  await load(url, { names: ["b"] });
  expect(blocks().map((path) => path.split("/").at(-1))).toEqual(["0", "3"]);
  expect(await load(url)).toBe(crc32(A));
  expect(held.web.sent).toBe(2 << 20);
});

it.each([
  ["a flipped bit", (bytes: Buffer) => Buffer.from(bytes).fill(bytes[1000]! ^ 1, 1000, 1001)],
  ["a lost end", (bytes: Buffer) => bytes.subarray(0, 1000)],
  ["nothing in it", () => Buffer.alloc(0)],
])("a block with %s is fetched again", async (_, damage) => {
  const url = serve();
  await load(url);
  const path = blocks()[1]!;
  const good = readFileSync(path);
  writeFileSync(path, damage(good));
  expect(await load(url)).toBe(crc32(A));
  expect([held.web.sent, readFileSync(path).equals(good)]).toEqual([1 << 20, true]);
});

it("keeps versions of a file apart", async () => {
  const url = serve();
  await load(url);
  const other = randomBytes(A.length, 5);
  serve(other);
  expect(await load(url)).toBe(crc32(other));
  serve();
  expect(await load(url)).toBe(crc32(A));
  expect(held.web.sent).toBe(0);
});

it("fills from one whole download where the server ignores ranges", async () => {
  const url = serve();
  held.web.hasRanges = false;
  expect(await load(url)).toBe(crc32(A));
  expect(await load(url)).toBe(crc32(A));
  expect(held.web.sent).toBe(0);
});

it("true is the user's folder of caches, and false none", async () => {
  const url = serve();
  vi.stubEnv("XDG_CACHE_HOME", folder.path);
  try {
    await load(url, { cache: true });
    expect(blocks()[0]).toContain(join(folder.path, "opt-checkpoint"));
    await load(url, { cache: false });
    expect(held.web.sent).toBeGreaterThan(A.length);
    vi.stubEnv("XDG_CACHE_HOME", "");
    vi.stubEnv("HOME", join(folder.path, "home"));
    await load(url, { cache: true });
    expect(readdirSync(join(folder.path, "home/.cache/opt-checkpoint")).length).toBe(1);
  } finally {
    vi.unstubAllEnvs();
  }
});

it("names the cache where it cannot be written", async () => {
  const file = join(folder.path, "file");
  mkdirSync(folder.path, { recursive: true });
  writeFileSync(file, "");
  const message = await expectCode("IO", load(serve(), { cache: file }));
  expect(message).toMatch(/file\] the cache must be writable, got .*name another folder as cache/);
});

it("keeps blocks where files are objects, as those of a page", async () => {
  serve();
  const store = httpObjects(new URL(`${held.web.url}/`), { headers: {}, cure: "" });
  const stat = (await store.stat("model.safetensors"))!;
  const kept = { fileSystem: memoryFileSystem(), path: ".cache" };
  for (const fetched of [stat.byteLength, 0]) {
    held.web.sent = 0;
    const bytes = new Uint8Array(stat.byteLength);
    await cached(store, "here", kept).read("model.safetensors", bytes, 0, stat);
    expect([crc32(bytes), held.web.sent]).toEqual([crc32(held.web.files.get("/model.safetensors")!), fetched]);
  }
});

it("keeps nothing of what has no version", async () => {
  serve();
  const store = httpObjects(new URL(`${held.web.url}/`), { headers: {}, cure: "" });
  const stat = (await store.stat("model.safetensors"))!;
  const kept = cached(store, "here", { fileSystem: localFileSystem, path: folder.path });
  await kept.read("model.safetensors", new Uint8Array(100), 0, { ...stat, version: undefined });
  expect([held.web.sent, blocks()]).toEqual([100, []]);
});

it("removes what was opened least recently where the limit needs it, and reads what has no room", async () => {
  const cacheLimit = 10 << 20;
  const url = serve();
  const [file] = held.web.files.values();
  const addresses = ["a", "b", "c"].map((name) => `${held.web.url}/${name}.safetensors`);
  for (const name of ["a", "b", "c"]) held.web.files.set(`/${name}.safetensors`, file!);
  const [a, b, c] = addresses as [string, string, string];
  // Another's folder, which holds more than the limit.
  mkdirSync(join(folder.path, "mine"));
  for (let i = 0; i < 20; i++) writeFileSync(join(folder.path, "mine", `${i}`), "");
  let opened = 0;
  const sentBy = async (address: string, limit = cacheLimit) => {
    expect(await load(address, { cacheLimit: limit })).toBe(crc32(A));
    opened++;
    for (const name of readdirSync(folder.path).filter((each) => each !== "mine")) {
      const used = join(folder.path, name, "used");
      if (statSync(used).mtimeMs > 1e6) utimesSync(used, opened, opened); // the one that was opened now
    }
    return held.web.sent > 0;
  };
  const kept = () => blocks().filter((path) => !path.includes("mine")).length;
  expect([await sentBy(a), await sentBy(b), await sentBy(a), await sentBy(c)]).toEqual([true, true, false, true]);
  expect([await sentBy(a), kept(), await sentBy(b)]).toEqual([false, 8, true]);
  expect([await sentBy(url, 1 << 20), await sentBy(url, 1 << 20), kept()]).toEqual([true, true, 1]);
  expect(readdirSync(join(folder.path, "mine")).length).toBe(20);
  await expectCode("BAD_ARGUMENT", load(url, { cacheLimit: -1 }));
});

it("gives the right bytes of files that are open at once, whatever has room", async () => {
  const files = [1_500_000, 2_100_000, 900_000].map((length, i) => randomBytes(length, i + 1));
  const read = fc.record({ file: fc.nat(2), position: fc.nat(800_000), length: fc.nat(1_400_000) });
  const store = {
    stat: async () => undefined,
    read: async (key: string, target: Uint8Array, position: number) =>
      target.set(files[Number(key)]!.subarray(position, position + target.length)),
  };
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.array(read, { maxLength: 2 })),
      async (blocks, turns) => {
        const cache = cached(store, "here", { fileSystem: memoryFileSystem(), path: ".cache", limit: blocks << 20 });
        for (const together of turns) {
          const readOne = async ({ file, position, length }: typeof read extends fc.Arbitrary<infer T> ? T : never) => {
            const expected = files[file]!.subarray(position, position + length);
            const bytes = new Uint8Array(expected.length);
            await cache.read(`${file}`, bytes, position, { byteLength: files[file]!.length, modified: 0, version: 1 });
            return Buffer.compare(bytes, expected);
          };
          expect(await Promise.all(together.map(readOne))).toEqual(together.map(() => 0));
        }
      },
    ),
    { seed: 2, numRuns: 25 },
  );
});
