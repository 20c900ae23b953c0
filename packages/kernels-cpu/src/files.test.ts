/** Files read by native code: what lies in memory is what the file has there, and the checksum is zlib's. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { type FileHandle, open, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { hostIo, init } from "@opt/core";
import { platformName } from "@opt/core/backend";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import "./index";
import { missingDevice } from "../testing/missing-device";
import { someBytes } from "../testing/some-bytes";
import { loadAddon } from "./load-addon";

const missing = missingDevice ?? (loadAddon().readFile ? undefined : " (skipped: the system has no such calls)");
const binary = () =>
  process.env.OPT_CPU_BINARY || createRequire(import.meta.url).resolve(`@opt/kernels-cpu-${platformName()}`);

const readFile = (file: number, bytes: Uint8Array, position: number) => hostIo().read!(file, bytes, position);

describe.skipIf(missing)(`cpu reads of files${missing ?? ""}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-files-"));
  const bytes = someBytes(3_000_001);
  let file: FileHandle;

  beforeAll(async () => {
    await writeFile(join(folder, "bytes"), bytes);
    file = await open(join(folder, "bytes"), "r");
  });

  afterAll(async () => {
    await file.close();
    rmSync(folder, { recursive: true });
  });

  it.each([
    [0, 0],
    [1, 0],
    [7, 2_999_994],
    [4096, 4095],
    [(1 << 18) - 1, 1],
    [1 << 18, 1 << 18],
    [(1 << 18) + 1, 3],
    [3_000_001, 0],
    [2_345_678, 654_321],
    [0, 3_000_001],
  ])("fill %d bytes from %d on", async (length, position) => {
    const memory = new Uint8Array(length + 20).fill(7);
    const target = memory.subarray(13, 13 + length);
    const wanted = bytes.subarray(position, position + length);
    expect(await readFile(file.fd, target, position)).toBe(crc32(wanted));
    expect(Buffer.compare(target, wanted)).toBe(0);
    expect([...memory.subarray(0, 13), ...memory.subarray(13 + length)]).toEqual(Array(20).fill(7));
  });

  it("tell where not all is there, or the system rejects", async () => {
    const [closed, directory] = [await open(join(folder, "bytes"), "r"), await open(folder, "r")];
    const { fd } = closed;
    await closed.close();
    const target = new Uint8Array(100);
    expect(await readFile(file.fd, target, bytes.length - 99)).toBeUndefined();
    expect(await readFile(file.fd, target, bytes.length)).toBeUndefined();
    expect(await readFile(file.fd, target, 2 ** 52)).toBeUndefined();
    expect(await readFile(fd, target, 0)).toBeUndefined();
    expect(await readFile(directory.fd, target, 0)).toBeUndefined();
    await directory.close();
  });

  it("find what lies behind 4 GiB", async () => {
    const large = await open(join(folder, "large"), "w+");
    const position = 2 ** 32 + 12_345;
    await large.write(bytes, 0, 1_000_000, position);
    const target = new Uint8Array(1_000_000);
    expect(await readFile(large.fd, target, position)).toBe(crc32(bytes.subarray(0, 1_000_000)));
    expect(Buffer.compare(target, bytes.subarray(0, 1_000_000))).toBe(0);
    await large.close();
  });

  it("go on at the same time, in memory that nobody else keeps, and after the device is closed", async () => {
    const device = await init("cpu");
    const sums = Array.from({ length: 64 }, (_, i) => readFile(file.fd, new Uint8Array(1_000_000), i * 1000));
    await device.close();
    const churn = Array.from({ length: 200 }, (_, i) => new Uint8Array(100_000).fill(i));
    const wanted = sums.map((_, i) => crc32(bytes.subarray(i * 1000, i * 1000 + 1_000_000)));
    expect(await Promise.all(sums)).toEqual(wanted);
    expect(churn.length).toBe(200);
  });

  // Programs of their own: what they end with is what native code did to them.
  const begin = `const { openSync } = require("node:fs");
    const begin = (path) => {
      const file = openSync(path, "r");
      for (let i = 0; i < 40; i++) addon.readFile(file, new Uint8Array(3_000_000), 1);
    };`;
  it.each([
    ["the program ends meanwhile", "begin(process.argv[1]); process.exit(3);", 3],
    ["the program fails meanwhile", "begin(process.argv[1]); throw new Error('wrong');", 1],
    ["nobody waits", "begin(process.argv[1]); process.exitCode = 4;", 4],
    [
      "their threads of JavaScript end meanwhile",
      `const { Worker } = require("node:worker_threads");
      const code = "const addon = require(" + JSON.stringify(process.argv[2]) + ");" + ${JSON.stringify(begin)} +
        "begin(" + JSON.stringify(process.argv[1]) + "); require('node:worker_threads').parentPort.postMessage(0); for (;;);";
      (async () => {
        for (let i = 0; i < 8; i++) {
          const worker = new Worker(code, { eval: true });
          await new Promise((done) => worker.once("message", done));
          await worker.terminate();
        }
        process.exitCode = 5;
      })();`,
      5,
    ],
  ])("harm nothing where %s", (_, program, status) => {
    const code = `const addon = require(process.argv[2]); ${begin} ${program}`;
    const ran = spawnSync(process.execPath, ["-e", code, join(folder, "bytes"), binary()], { encoding: "utf8" });
    expect([ran.signal, ran.status], ran.stderr).toEqual([null, status]);
  });
});
