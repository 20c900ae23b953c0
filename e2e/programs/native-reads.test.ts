/** Files that the native device reads for checkpoints: what is damaged is found, and nothing that goes on meanwhile does harm. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadCheckpoint, mergeCheckpoint, saveCheckpoint, verifyCheckpoint } from "@opt/checkpoint";
import { init, type Tensor, tensor, zeros } from "@opt/core";
import "@opt/kernels-cpu";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const missing = await init("cpu").then(
  () => undefined,
  (error: Error) => error.message,
);
/** In elements: of two pieces and a little, of one, short ones, and none. */
const LENGTHS = [2_100_000, 1 << 20, 1 << 20, 20_000, 100, 0];
const named = <T>(make: (length: number, i: number) => T) =>
  Object.fromEntries(LENGTHS.map((length, i) => [`t${i}`, make(length, i)]));
const WANTED = named((length, i) => Float32Array.from({ length }, (_, at) => Math.imul(at + i, 2_654_435_761) / 7));
const BYTES = 4 * LENGTHS.reduce((sum, length) => sum + length);

describe.skipIf(missing)(`checkpoints read by native code${missing ? ` (skipped: ${missing})` : ""}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-reads-"));
  const run = join(folder, "run");
  let step: string;
  const fileOf = (path: string) => join(path, readdirSync(path).find((name) => name.endsWith(".safetensors"))!);

  beforeAll(async () => {
    await init("cpu");
    step = (await saveCheckpoint(run, { step: 1, tensors: named((_, i) => tensor(WANTED[`t${i}`]!)) })).path;
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const expectWhole = (tensors: Readonly<Record<string, Tensor>>) => {
    for (const [name, data] of Object.entries(WANTED))
      expect(Buffer.compare(tensors[name]!.bytesSync(), new Uint8Array(data.buffer)), name).toBe(0);
  };
  const model = () => named((length) => zeros([length]));

  /** A copy of the step, whose file `damage` has changed. */
  function damaged(damage: (file: string) => void): string {
    const copy = mkdtempSync(join(folder, "copy-"));
    cpSync(step, copy, { recursive: true });
    damage(fileOf(copy));
    return copy;
  }

  it("are whole, and so is what they are read into", async () => {
    const { tensors, unverified, bytesRead } = await loadCheckpoint(run);
    expectWhole(tensors);
    expect([unverified, bytesRead]).toEqual([[], BYTES]);
    const into = model();
    await loadCheckpoint(run, { into });
    expectWhole(into);
    expect(await verifyCheckpoint(run)).toMatchObject({ ok: true });
    await mergeCheckpoint(run, join(folder, "merged.safetensors"));
    expectWhole((await loadCheckpoint(join(folder, "merged.safetensors"))).tensors);
  });

  // From the end of the file: the short tensors, then pieces of the long ones, their first and last bytes among them.
  const changed = [
    1,
    401,
    80_401,
    (4 << 20) + 80_400,
    (4 << 20) + 80_401,
    (8 << 20) + 80_401,
    BYTES - (4 << 20),
    BYTES,
  ];
  it.each(changed)("are rejected where byte %d from the end has changed", async (fromEnd) => {
    const copy = damaged((file) => {
      const bytes = readFileSync(file);
      bytes[bytes.length - fromEnd]! ^= 16;
      writeFileSync(file, bytes);
    });
    const wrong = { code: "CORRUPT", message: expect.stringContaining("checksum must be") };
    const into = model();
    await expect(loadCheckpoint(copy)).rejects.toMatchObject(wrong);
    await expect(loadCheckpoint(copy, { into })).rejects.toMatchObject(wrong);
    expect(Object.values(into).every((one) => one.bytesSync().every((byte) => byte === 0))).toBe(true);
    await expect(mergeCheckpoint(copy, join(folder, "out"))).rejects.toMatchObject(wrong);
    expect((await verifyCheckpoint(copy)).problems).toHaveLength(1);
  });

  it.each([1, 401, 5 << 20, BYTES])("are rejected where the last %d bytes are missing", async (bytes) => {
    const copy = damaged((file) => truncateSync(file, statSync(file).size - bytes));
    await expect(loadCheckpoint(copy)).rejects.toMatchObject({ code: "CORRUPT" });
    await expect(mergeCheckpoint(copy, join(folder, "out"))).rejects.toMatchObject({ code: "CORRUPT" });
    expect(await verifyCheckpoint(copy)).toMatchObject({ ok: false });
  });

  it.each([0, 1, 2, 4, 8, 16])("are whole or rejected where the file is cut after %d turns", async (turns) => {
    const copy = damaged(() => {});
    const loading = loadCheckpoint(copy).then(
      ({ tensors }) => expectWhole(tensors),
      (error) => expect(error).toMatchObject({ code: "CORRUPT" }),
    );
    for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
    truncateSync(fileOf(copy), 5 << 20);
    await loading;
  });

  it("leave alone who takes the memory of tensors that are disposed meanwhile", async () => {
    const into = model();
    const loading = loadCheckpoint(run, { into, verify: true });
    const others: Tensor[] = [];
    for (const one of Object.values(into)) {
      await new Promise(setImmediate);
      one.dispose();
      others.push(zeros(one.shape));
    }
    await loading.catch(() => {});
    expect(others.every((one) => one.bytesSync().every((byte) => byte === 0))).toBe(true);
  });

  it("are whole where several are read at once, and the device is closed meanwhile", async () => {
    const loads = Array.from({ length: 3 }, () => loadCheckpoint(run, { as: "plain" }));
    await new Promise(setImmediate);
    await (await init("cpu")).close();
    for (const { tensors } of await Promise.all(loads))
      for (const [name, data] of Object.entries(WANTED))
        expect(Buffer.compare(tensors[name]!.data, new Uint8Array(data.buffer)), name).toBe(0);
    await init("cpu");
  });
});
