/** Options of what is read are those of every call that reads: which step, of whose ranks, how long a header, and what of it. */
import { init } from "@opt/core";
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { expectCode } from "../../testing/expect-code";
import { floats, mindsporeFile } from "../../testing/files/made-files";
import { diffCheckpoints } from "../compare/diff";
import { convertCheckpoint } from "../convert/convert";
import { explainCheckpoint } from "../explain/explain";
import { parseManifest } from "../format/manifest";
import { defaultLayout } from "../layout/layout";
import { loadCheckpoint } from "../operations";
import { mergeCheckpoint } from "../rewrite/merge";
import { reshardCheckpoint } from "../rewrite/reshard";
import { saveCheckpoint } from "../save/save";
import type { FileSystem } from "../stores/file-system";
import { inspectCheckpoint } from "./inspect";
import { type OpenOptions, openSource } from "./open";
import type { Selection } from "./select";
import { verifyCheckpoint } from "./verify";

await init("js");

const numbers = (...data: number[]) => ({ dtype: "f32", shape: [data.length], data: Float32Array.from(data) });

/** Steps 1 to 3, whose w is the step; the loss of step 2 is the least. */
async function saved(): Promise<MemoryFileSystem> {
  const fileSystem = new MemoryFileSystem();
  for (const step of [1, 2, 3]) {
    const tensors = { w: numbers(step, step), b: numbers(0.1) };
    await saveCheckpoint("/run", { step, tensors, values: { loss: Math.abs(step - 2) } }, { fileSystem });
  }
  return fileSystem;
}

/** What a checkpoint holds. */
async function held(path: string, fileSystem: FileSystem, options: OpenOptions & Selection = {}) {
  const { tensors } = await loadCheckpoint(path, { ...options, fileSystem });
  return Object.fromEntries(Object.entries(tensors).map(([name, x]) => [name, x.tolist() as number[]]));
}

type Held = Awaited<ReturnType<typeof held>>;
type Call = (path: string, fileSystem: FileSystem, options: OpenOptions & Selection) => Promise<Held>;

/** What writes a checkpoint of another. */
const writers: [string, Call][] = [
  [
    "mergeCheckpoint",
    async (path, fileSystem, options) => {
      const outFileSystem = new MemoryFileSystem();
      await mergeCheckpoint(path, "/out", { ...options, fileSystem, outFileSystem });
      return held("/out", outFileSystem);
    },
  ],
  [
    "reshardCheckpoint",
    async (path, fileSystem, options) => {
      const outFileSystem = new MemoryFileSystem();
      await reshardCheckpoint(path, "/out", { ...options, ranks: 2, fileSystem, outFileSystem });
      return held("/out", outFileSystem);
    },
  ],
  [
    "convertCheckpoint",
    async (path, fileSystem, options) => {
      const outFileSystem = new MemoryFileSystem();
      await convertCheckpoint(path, "/out", { ...options, to: "safetensors", fileSystem, outFileSystem });
      return held("/out", outFileSystem);
    },
  ],
];

/** What gives back tensors, or their shapes. */
const readers: [string, Call][] = [
  ...writers,
  ["loadCheckpoint", (path, fileSystem, options) => held(path, fileSystem, options)],
];

/** Two ranks of MindSpore, whose files do not say how w is cut. */
async function ofRanks(): Promise<MemoryFileSystem> {
  const fileSystem = new MemoryFileSystem();
  for (const [rank, values] of [[1, 2], [3]].entries()) {
    const bytes = mindsporeFile([["w", [values.length], "Float32", floats(...values)]]);
    const path = `/ranks/rank_${rank}`;
    await fileSystem.makeFolder(path);
    const file = await fileSystem.open(`${path}/net-1_32.ckpt`, "create");
    await file.write(bytes, 0);
    await file.finish();
    await file.close();
  }
  return fileSystem;
}

describe.each(readers)("%s", (_, read) => {
  it("reads the step that is named, or the best by a value", async () => {
    const fileSystem = await saved();
    const options: OpenOptions[] = [
      {},
      { step: 1 },
      { best: { value: "loss" } },
      { best: { value: "loss", highest: true } },
    ];
    const found = await Promise.all(options.map((each) => read("/run", fileSystem, each)));
    expect(found.map(({ w }) => w![0])).toEqual([3, 1, 2, 3]);
  });

  it("reads ranks by the layout that they had", async () => {
    const options: OpenOptions = { sourceLayout: defaultLayout(2) };
    expect(await read("/ranks", await ofRanks(), options)).toEqual({ w: [1, 2, 3] });
  });

  it("reads headers up to a limit", async () => {
    const fileSystem = await saved();
    const options: OpenOptions = { maxHeaderBytes: 1 << 16 };
    expect((await read("/run", fileSystem, options)).w).toEqual([3, 3]);
    await expectCode("REFUSED", read("/run", fileSystem, { maxHeaderBytes: 16 }));
  });

  it("selects tensors, converts them, and compares checksums unless it is told not to", async () => {
    const fileSystem = await saved();
    const selections: Selection[] = [{ names: ["w"] }, { exclude: ["b*"] }, { names: ["w"], dtype: "f64" }];
    for (const selection of selections) expect(await read("/run", fileSystem, selection)).toEqual({ w: [3, 3] });
    const path = "/run/step-00000003";
    const { files } = parseManifest(fileSystem.contents(`${path}/manifest.json`), "manifest");
    const shard = fileSystem.contents(`${path}/${files[0]!.name}`);
    shard[shard.length - 1]! ^= 1;
    await expectCode("CORRUPT", read("/run", fileSystem, {}));
    expect(Object.keys(await read("/run", fileSystem, { verify: false }))).toEqual(["b", "w"]);
  });
});

it("openSource, inspectCheckpoint and verifyCheckpoint look at the step that is named, or the best", async () => {
  const fileSystem = await saved();
  const options: OpenOptions[] = [{ step: 1 }, { best: { value: "loss" } }, { maxHeaderBytes: 1 << 16 }];
  for (const [i, each] of options.entries()) {
    const path = `/run/step-0000000${i + 1}`;
    expect((await openSource("/run", { ...each, fileSystem })).step).toBe(i + 1);
    expect((await inspectCheckpoint("/run", { ...each, fileSystem })).step).toBe(i + 1);
    expect((await explainCheckpoint("/run", { ...each, fileSystem })).path).toBe(path);
    expect(await diffCheckpoints("/run", "/run", { ...each, fileSystem })).toMatchObject({ equal: true });
    expect(await verifyCheckpoint("/run", { ...each, fileSystem })).toMatchObject({ ok: true, path });
  }
  const short: OpenOptions = { maxHeaderBytes: 16, fileSystem };
  await expectCode("REFUSED", openSource("/run", short));
  await expectCode("REFUSED", inspectCheckpoint("/run", short));
  expect((await verifyCheckpoint("/run", short)).ok).toBe(false);
  await expectCode("REFUSED", diffCheckpoints("/run", "/run", short));
});

it("openSource, inspectCheckpoint, verifyCheckpoint and diffCheckpoints read ranks by the layout that they had", async () => {
  const fileSystem = await ofRanks();
  const options: OpenOptions = { sourceLayout: defaultLayout(2), fileSystem };
  expect((await openSource("/ranks", options)).tensors.get("w")!.shape).toEqual([3]);
  expect((await inspectCheckpoint("/ranks", options)).tensors.map(({ shape }) => shape)).toEqual([[3]]);
  expect(await verifyCheckpoint("/ranks", options)).toMatchObject({ ok: true, tensors: 1 });
  expect((await explainCheckpoint("/ranks", options)).parameters).toBe(1);
  expect(await diffCheckpoints("/ranks", "/ranks", { ...options, maxHeaderBytes: 1 << 16 })).toMatchObject({
    equal: true,
  });
});

it("diffCheckpoints counts as equal what is near, from two stores, and reports how far it is", async () => {
  const [fileSystem, otherFileSystem] = [await saved(), new MemoryFileSystem()];
  await saveCheckpoint(
    "/run",
    { step: 3, tensors: { w: numbers(3, 3.5), b: numbers(0.1) } },
    { fileSystem: otherFileSystem },
  );
  const diff = async (options: Parameters<typeof diffCheckpoints>[2]) =>
    (await diffCheckpoints("/run", "/run", { fileSystem, otherFileSystem, ...options })).differences;
  expect(await diff({})).toMatchObject([{ name: "w", kind: "values", count: 1, first: 1, maxAbs: 0.5 }]);
  expect([await diff({ atol: 0.5 }), await diff({ rtol: 0.15 })]).toEqual([[], []]);
  expect([await diff({ atol: 0.4 }), await diff({ rtol: 0.1 })].map(({ length }) => length)).toEqual([1, 1]);
  const done: number[] = [];
  await diff({ progress: ({ bytes, total }) => done.push(bytes / total) });
  expect(done.at(-1)).toBe(1);
});

it("diffCheckpoints compares what is stored with verify: false, whatever its checksums", async () => {
  const [fileSystem, otherFileSystem] = [await saved(), await saved()];
  const path = "/run/step-00000003";
  const { files } = parseManifest(fileSystem.contents(`${path}/manifest.json`), "manifest");
  const shard = fileSystem.contents(`${path}/${files[0]!.name}`);
  shard[shard.length - 1]! ^= 1;
  await expectCode("CORRUPT", diffCheckpoints("/run", "/run", { fileSystem, otherFileSystem }));
  const found = await diffCheckpoints("/run", "/run", { fileSystem, otherFileSystem, verify: false });
  expect(found.differences).toMatchObject([{ kind: "values", count: 1 }]);
});

it("convertCheckpoint replaces a file with overwrite, in little memory, and reports how far it is", async () => {
  const fileSystem = await saved();
  const convert = (options: Partial<Parameters<typeof convertCheckpoint>[2]>) =>
    convertCheckpoint("/run", "/out", { to: "safetensors", fileSystem, ...options });
  await convert({ step: 1 });
  await expectCode("DUPLICATE", convert({}));
  const done: number[] = [];
  await convert({ overwrite: true, maxMemory: 1 << 20, progress: ({ bytes, total }) => done.push(bytes / total) });
  expect([(await held("/out", fileSystem)).w, done.at(-1)]).toEqual([[3, 3], 1]);
});

it("reshardCheckpoint keeps sha256 of its files in the manifest", async () => {
  const fileSystem = await saved();
  const { path } = await reshardCheckpoint("/run", "/again", { ranks: 1, sha256: true, fileSystem });
  const { files } = parseManifest(fileSystem.contents(`${path}/manifest.json`), "manifest");
  expect(files[0]!.sha256).toMatch(/^[0-9a-f]{64}$/);
});
