/** Steps of many boxes: the manifest says how tensors are cut, and a file beside it has the checksums. */
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { expectCode } from "../../testing/expect-code";
import { randomBytes, sampleTensors, scratchFolder } from "../../testing/fixtures";
import { measureManyRanks } from "../../testing/programs/measure-many-ranks";
import { crc32, crcText } from "../format/crc32";
import { manifestLimits, parseManifest } from "../format/manifest";
import type { Layout } from "../layout/layout";
import { loadCheckpoint, mergeCheckpoint, reshardCheckpoint } from "../operations";
import { verifyCheckpoint } from "../read/verify";
import { saveCheckpoint } from "./save";

const { listed, bytes } = manifestLimits;
beforeAll(() => {
  manifestLimits.listed = -1;
});
afterEach(() => {
  manifestLimits.bytes = bytes;
});
afterAll(() => {
  manifestLimits.listed = listed;
});

const STEP = "/r/step-00000001";
const nested: Layout = {
  mesh: { shape: [2, 3], axes: ["data", "model"] },
  tensors: {
    "*weight": { split: [["model", "data"]], nested: true },
    mask: {
      boxes: [
        [{ offset: [0, 0, 0], size: [2, 1, 2] }],
        [{ offset: [2, 0, 0], size: [1, 1, 2] }],
        ...Array.from({ length: 4 }, () => []),
      ],
    },
    "*": "replicate",
  },
};

async function saved(options: object = {}) {
  const fileSystem = new MemoryFileSystem();
  const save = () =>
    saveCheckpoint("/r", { step: 1, tensors: sampleTensors(1) }, { layout: nested, fileSystem, ...options });
  await save();
  return { fileSystem, save, files: async () => (await fileSystem.list(STEP)).map(({ name }) => name) };
}

/** The manifest as somebody writes it who can compute checksums too. */
function forge(fileSystem: MemoryFileSystem, edit: (raw: Record<string, never>) => void): void {
  const path = `${STEP}/manifest.json`;
  const raw = JSON.parse(new TextDecoder().decode(fileSystem.contents(path)));
  edit(raw);
  delete raw.crc32;
  const body = new TextEncoder().encode(JSON.stringify(raw).slice(0, -1));
  const tail = new TextEncoder().encode(`,\n"crc32":"${crcText(crc32(body))}"}\n`);
  fileSystem.replace(path, Buffer.concat([body, tail]));
}

describe("a step whose manifest says cuts", () => {
  it("loads whole, by slices and on other ranks, as it was saved, and verifies", async () => {
    const { fileSystem } = await saved();
    const right = sampleTensors(1);
    const { tensors, unverified } = await loadCheckpoint("/r", { fileSystem, as: "plain" });
    for (const [name, { data }] of Object.entries(right)) expect(tensors[name]!.data).toEqual(data);
    expect(unverified).toEqual([]);
    const part = await loadCheckpoint("/r", { fileSystem, as: "plain", slices: { "fc.weight": [[3, 6]] } });
    expect(part.tensors["fc.weight"]!.data).toEqual((right["fc.weight"]!.data as Uint8Array).slice(72, 144));
    const result = await verifyCheckpoint("/r", { fileSystem });
    expect(result).toMatchObject({ ok: true, tensors: 5 });
    await reshardCheckpoint("/r", "/s", { ranks: 4, fileSystem });
    await mergeCheckpoint("/s", "/r/whole.safetensors", { fileSystem, maxMemory: 65536 });
    const merged = await loadCheckpoint("/r/whole.safetensors", { fileSystem, as: "plain" });
    for (const [name, { data }] of Object.entries(right)) expect(merged.tensors[name]!.data).toEqual(data);
  });

  it("has one division of all tensors that lie alike", async () => {
    const { fileSystem } = await saved();
    const { index } = parseManifest(fileSystem.contents(`${STEP}/manifest.json`), "m");
    const [weight, moments] = ["fc.weight", "moments.fc.weight"].map((name) =>
      index!.tensors.find((tensor) => tensor.name === name),
    );
    expect(weight!.division).toBe(moments!.division);
    // 8 rows over 3 ranks, each part over 2.
    const rows = [2, 1, 2, 1, 1, 1];
    expect(weight!.division.boxes.map(({ size }) => size)).toEqual(rows.map((length) => [length, 6]));
    expect(weight!.division.text()).toContain('"sizes":[[[2,2,-1],[2,2,-1],[1,2,0]],[[6,1,0]]]');
  });

  it.each([{}, { overwrite: true }])("that is replaced leaves no file of the one before: %o", async (options) => {
    const { files, save } = await saved(options);
    const before = await files();
    expect(before.filter((name) => name.startsWith("checksums"))).toHaveLength(1);
    if (!("overwrite" in options)) return expectCode("DUPLICATE", save()).then(() => undefined);
    await save();
    const after = await files();
    expect(after).toHaveLength(before.length);
    expect(after.filter((name) => before.includes(name))).toEqual(["manifest.json"]);
  });

  it("any byte of the checksums changed is found, by name and range; unverified, tensors load", async () => {
    const { fileSystem } = await saved();
    const sums = fileSystem.contents(`${STEP}/checksums.bin`);
    for (let at = 0; at < sums.length; at++) {
      sums[at]! ^= 1 << (at % 8);
      const { ok, problems } = await verifyCheckpoint(STEP, { fileSystem });
      expect([ok, problems.length]).toEqual([false, 1]);
      expect(problems).toMatchObject([{ subject: "checksums", file: "checksums.bin" }]);
      expect(problems[0]!.begin <= at && at < problems[0]!.end).toBe(true);
      expect(await expectCode("CORRUPT", loadCheckpoint(STEP, { fileSystem, as: "plain" }))).toContain("checksums.bin");
      sums[at]! ^= 1 << (at % 8);
    }
    fileSystem.replace(`${STEP}/checksums.bin`, Buffer.concat([sums, Buffer.from("x")]));
    expect((await verifyCheckpoint(STEP, { fileSystem })).problems).toMatchObject([{ begin: sums.length }]);
    await fileSystem.remove(`${STEP}/checksums.bin`);
    await expectCode("MISSING", loadCheckpoint(STEP, { fileSystem, as: "plain" }));
    const { tensors } = await loadCheckpoint(STEP, { fileSystem, as: "plain", verify: false });
    expect(tensors["fc.bias"]!.data).toEqual(sampleTensors(1)["fc.bias"]!.data);
  });

  it.each<[string, string, string, unknown]>([
    ["a checksums file elsewhere", "REFUSED", "checksums", "../checksums.bin"],
    ["no divisions", "CORRUPT", "divisions", null],
    ["a division that is not there", "CORRUPT", "tensors.0.division", 99],
    ["a box in no file", "CORRUPT", "divisions.0.files", [[99, 1, 0]]],
    ["more files than boxes", "CORRUPT", "divisions.0.files", [[0, 2, 0]]],
    ["more boxes than memory", "CORRUPT", "divisions.0.files", [[0, 2 ** 40, 0]]],
    ["runs below zero", "CORRUPT", "divisions.0.files", [[1, 3, -1]]],
    ["neither sizes nor boxes", "CORRUPT", "divisions.0", { files: [[0, 1, 0]] }],
    ["another number of boxes", "CORRUPT", "files.0.boxes", 1],
    ["another checksum of checksums", "CORRUPT", "files.0.boxesCrc32", "00000000"],
    ["another length of a file", "CORRUPT", "files.0.byteLength", 4096],
  ])("with %s is rejected: %s", async (_, code, path, value) => {
    const { fileSystem } = await saved();
    const keys = path.split(".");
    forge(fileSystem, (raw) => {
      const owner = keys.slice(0, -1).reduce((at: Record<string, never>, key) => at[key]!, raw);
      expect(owner[keys.at(-1)!]).not.toEqual(value);
      owner[keys.at(-1)!] = value as never;
    });
    await expectCode(code as "CORRUPT", loadCheckpoint(STEP, { fileSystem, as: "plain" }));
  });

  it("and is longer than its reader takes is not made", async () => {
    const { fileSystem, files, save } = await saved();
    manifestLimits.bytes = fileSystem.contents(`${STEP}/manifest.json`).length - 1;
    await expectCode("REFUSED", loadCheckpoint(STEP, { fileSystem, as: "plain" }));
    await fileSystem.remove(STEP);
    expect(await expectCode("BAD_ARGUMENT", save())).toContain("layout");
    expect(await files().catch(() => [])).toEqual([]);
  });

  it("of any cuts is what was saved", async () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(sizes, sizes, fc.boolean(), async (rows, columns, isSwapped) => {
        const shape = [rows, columns].map((list) => list.reduce((sum, size) => sum + size, 0));
        const axes = isSwapped ? ["b", "a"] : ["a", "b"];
        const layout: Layout = {
          mesh: { shape: isSwapped ? [columns.length, rows.length] : [rows.length, columns.length], axes },
          tensors: { "*": { split: ["a", "b"], sizes: [rows, columns] } },
        };
        const fileSystem = new MemoryFileSystem();
        const data = randomBytes(shape[0]! * shape[1]!, 3);
        const tensors = { w: { dtype: "U8" as const, shape, data }, v: { dtype: "U8" as const, shape, data } };
        await saveCheckpoint("/r", { step: 1, tensors }, { layout, fileSystem });
        const loaded = await loadCheckpoint("/r", { fileSystem, as: "plain" });
        for (const name of ["v", "w"]) expect(loaded.tensors[name]!.data).toEqual(data);
      }),
      { seed: 5, numRuns: 100 },
    );
  });
});

describe("256 ranks and 700 parameters", () => {
  const folder = scratchFolder();
  it("have a manifest of 200 bytes a rank and 200 a tensor at most", async () => {
    const { save, plan } = await measureManyRanks(folder.path, 256, 700);
    expect(save.bytes).toBeLessThan(200 * (256 + 4 * 700));
    // A rank reads its own file, and the numbers of all in one other.
    expect(plan.files).toBe(2);
    expect(plan.memory).toBeLessThan(300 << 20);
  });
});
