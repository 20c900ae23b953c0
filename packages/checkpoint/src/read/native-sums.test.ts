/** Checksums that native code takes of what it reads: verification relies on them, and takes them itself if they are missing. */
import { readSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { registerHostIo } from "@opt/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FaultyFileSystem } from "../../testing/disks/faulty-file-system";
import { randomBytes, scratchFolder } from "../../testing/fixtures";
import { loadCheckpoint } from "../operations";
import { localFileSystem } from "../platform/local";
import { mergeCheckpoint } from "../rewrite/merge";
import { reshardCheckpoint } from "../rewrite/reshard";
import { saveCheckpoint } from "../save/save";
import { verifyCheckpoint } from "./verify";

const folder = scratchFolder();
/** Longer than what is read at once, in two pieces, in one, too short for native code, and empty. */
const lengths = [(4 << 20) + 100_000, 8 << 20, 70_000, 3000, 0];
const tensors = Object.fromEntries(
  lengths.map((length, i) => [`t${i}`, { dtype: "U8", shape: [length], data: randomBytes(length, i) }]),
);

/** What native code answers, made of the right answer. */
let answer: (sum: number) => number | undefined;
let readings: number[];
let run: string;

beforeEach(async () => {
  [answer, readings] = [(sum) => sum, []];
  const read = async (file: number, bytes: Uint8Array, position: number) => {
    readings.push(bytes.length);
    return readSync(file, bytes, 0, bytes.length, position) === bytes.length ? answer(crc32(bytes)) : undefined;
  };
  run = (await saveCheckpoint(join(folder.path, "run"), { step: 1, tensors })).path;
  registerHostIo(() => ({ read }));
});
afterEach(() => registerHostIo(() => ({})));

const into = () =>
  Object.fromEntries(
    lengths.map((length, i) => [`t${i}`, { dtype: "U8", shape: [length], data: new Uint8Array(length) }]),
  );

const readers: [string, () => Promise<unknown>][] = [
  ["load", () => loadCheckpoint(run, { as: "plain" })],
  ["load into what is there", () => loadCheckpoint(run, { as: "plain", into: into() })],
  ["merge", () => mergeCheckpoint(run, join(folder.path, "merged"), { overwrite: true })],
  ["reshard", () => reshardCheckpoint(run, join(folder.path, "resliced"), { ranks: 2, overwrite: true })],
];

describe.each(readers)("%s", (_, read) => {
  it("believes checksums that were taken on the way", async () => {
    await read();
    expect(readings.reduce((sum, length) => sum + length, 0)).toBeGreaterThanOrEqual((12 << 20) + 100_000);
    answer = (sum) => sum ^ 1;
    await expect(read()).rejects.toMatchObject({ code: "CORRUPT", message: expect.stringContaining("checksum") });
  });

  it("takes them itself if they are missing", async () => {
    answer = () => undefined;
    await read();
    expect(readings.length).toBeGreaterThan(0);
  });
});

it("loads the same bytes, all of them verified", async () => {
  const loaded = await loadCheckpoint(run, { as: "plain" });
  for (const [name, { data }] of Object.entries(tensors))
    expect(Buffer.compare(loaded.tensors[name]!.data, data), name).toBe(0);
  expect(loaded).toMatchObject({ unverified: [], bytesRead: lengths.reduce((sum, length) => sum + length) });
});

it("asks for none where nothing is verified", async () => {
  await loadCheckpoint(run, { as: "plain", verify: false });
  expect(readings).toEqual([]);
});

it("takes them itself of what a store passes on that knows of none", async () => {
  answer = () => 0;
  const fileSystem = new FaultyFileSystem(localFileSystem);
  expect(await loadCheckpoint(run, { as: "plain", fileSystem })).toMatchObject({ unverified: [] });
  expect(readings).toEqual([]);
});

it("verify names what does not match, and where", async () => {
  expect(await verifyCheckpoint(run)).toMatchObject({ ok: true });
  answer = (sum) => sum ^ 1;
  const { problems } = await verifyCheckpoint(run);
  expect(problems.map(({ subject }) => subject)).toEqual(expect.arrayContaining(["t0", "t1", "t2"]));
});
