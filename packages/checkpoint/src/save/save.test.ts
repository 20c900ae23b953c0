import { hostBytes, Tensor, tensor } from "@opt/core";
import { beforeEach, describe, expect, it } from "vitest";
import { FaultyFileSystem } from "../../testing/disks/faulty-file-system";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { randomBytes, sampleTensors, scratchFolder } from "../../testing/fixtures";
import { saveOnRanks } from "../../testing/save-on-ranks";
import { readManifest } from "../format/manifest";
import type { Layout } from "../layout/layout";
import { loadCheckpoint } from "../operations";
import { verifyCheckpoint } from "../read/verify";
import type { OpenMode } from "../stores/file-system";
import { singleProcess } from "./ranks/communicator";
import { type CheckpointContents, type SaveOptions, saveCheckpoint } from "./save";

const f32 = (shape: number[], ...values: number[]) => ({ dtype: "f32", shape, data: Float32Array.from(values) });
const one = { step: 1, tensors: { w: f32([2], 1, 2) } };
const rows: Layout = { mesh: { shape: [4], axes: ["model"] }, tensors: { w: ["model"], "*": "replicate" } };

describe("saveCheckpoint", () => {
  it("takes Tensors, plain objects and pairs", async () => {
    const fileSystem = new MemoryFileSystem();
    const pairs = [
      [
        "a",
        tensor([
          [1, 2],
          [3, 4],
        ]),
      ],
      ["b", f32([1], 5)],
    ] as const;
    await saveCheckpoint("/r", { step: 0, tensors: pairs }, { fileSystem });
    const { tensors } = await loadCheckpoint("/r", { fileSystem });
    expect([...(await tensors.a!.data())]).toEqual([1, 2, 3, 4]);
    expect(tensors.a!.shape).toEqual([2, 2]);
    expect([...(await tensors.b!.data())]).toEqual([5]);
  });

  it.each([
    ["a plain tensor", (data: Float32Array) => ({ dtype: "f32", shape: [data.length], data }), "saved"],
    ["a Tensor, which tells of it,", (data: Float32Array) => tensor(data), "CHANGED"],
  ])("%s that changes while it is written is what its checksum says, or rejected", async (_, made, outcome) => {
    const saved = made(new Float32Array(600_000).fill(1));
    const change = () => (saved instanceof Tensor ? hostBytes(saved, "write")! : saved.data).fill(2);
    class Slow extends MemoryFileSystem {
      override async open(path: string, mode: OpenMode) {
        const file = await super.open(path, mode);
        const write = async (bytes: Uint8Array, position: number) => {
          await Promise.resolve();
          change();
          await file.write(bytes, position);
        };
        return { ...file, write };
      }
    }
    const fileSystem = new Slow();
    const saving = saveCheckpoint("/r", { step: 0, tensors: { w: saved } }, { fileSystem });
    const code = await saving.then(
      () => "saved",
      (error) => error.code,
    );
    expect(code).toBe(outcome);
    if (code === "saved") expect(await verifyCheckpoint("/r", { fileSystem })).toMatchObject({ ok: true });
  });

  it("gathers small tensors, and each is the same and checked alone", async () => {
    const fileSystem = new MemoryFileSystem();
    const sizes = [1, 3, 70_000, 0, 5, 65_536, 65_536, ...new Array(40).fill(60_000), 2];
    const tensors = Object.fromEntries(
      sizes.map((n, i) => [`t${i}`, { dtype: "u8", shape: [n], data: randomBytes(n, i) }]),
    );
    const { path } = await saveCheckpoint("/r", { step: 1, tensors }, { fileSystem });
    expect(await verifyCheckpoint(path, { fileSystem })).toMatchObject({ ok: true, tensors: sizes.length });
    const { tensors: loaded } = await loadCheckpoint(path, { fileSystem, as: "plain" });
    for (const [name, { data }] of Object.entries(tensors)) expect(Buffer.compare(loaded[name]!.data, data)).toBe(0);
  });
});

describe("ranks", () => {
  const slice = (rank: number) => ({ w: f32([2], 2 * rank, 2 * rank + 1), lr: f32([], 0.5) });
  const whole = [0, 1, 2, 3, 4, 5, 6, 7];
  const replicated = (size: number, axis = "x"): Layout => ({
    mesh: { shape: [size], axes: [axis] },
    tensors: { "*": "replicate" },
  });
  let fileSystem: MemoryFileSystem;
  beforeEach(() => {
    fileSystem = new MemoryFileSystem();
  });
  const kinds = (outcomes: readonly { status: string }[]) => outcomes.map(({ status }) => status);
  const check = async () => {
    const { tensors } = await loadCheckpoint("/r", { fileSystem });
    expect([...(await tensors.w!.data())]).toEqual(whole);
    const { tensors: stored, files } = await readManifest(fileSystem, "/r/step-00000001");
    expect(files.reduce((sum, { byteLength, headerLength }) => sum + byteLength - headerLength, 0)).toBe(36);
    expect(stored.map(({ name, boxes }) => [name, boxes.length])).toEqual([
      ["lr", 1],
      ["w", 4],
    ]);
  };

  it("that talk: each writes its file, what all hold is written once", async () => {
    const outcomes = await saveOnRanks(4, slice, { layout: rows, checkReplicas: true, fileSystem });
    for (const outcome of outcomes) expect(outcome).toMatchObject({ value: { path: "/r/step-00000001" } });
    await check();
  });

  it("with whole tensors write only their slices of them", async () => {
    await saveOnRanks(4, () => ({ w: f32([8], ...whole), lr: f32([], 0.5) }), { whole: true, fileSystem });
    await check();
  });

  it("that hold other bytes of what all hold are told apart only when asked", async () => {
    const save = (step: number, values: readonly number[], options: SaveOptions = {}) =>
      saveOnRanks(
        3,
        (rank) => ({ w: f32([1], 1), v: f32([1], values[rank]!) }),
        { layout: replicated(3), fileSystem, ...options },
        step,
      );
    for (const values of [
      [1, 1, 2],
      [1, 2, 1],
      [2, 1, 1],
    ])
      for (const outcome of await save(1, values, { checkReplicas: true }))
        expect(outcome).toMatchObject({ reason: { code: "BAD_STATE", message: expect.stringContaining('"v"') } });
    expect(kinds(await save(1, [1, 1, 1], { checkReplicas: true }))).not.toContain("rejected");
    expect(kinds(await save(2, [1, 1, 2]))).not.toContain("rejected");
  });

  it("name their files by the rank alone, unless they may replace others'", async () => {
    const namesOf = async (options: SaveOptions) => {
      await saveOnRanks(2, (rank) => ({ w: f32([2], 1, rank) }), { fileSystem, ...options });
      return (await readManifest(fileSystem, "/r/step-00000001")).files.map(({ name }) => name);
    };
    expect(await namesOf({})).toEqual(["rank-00000.safetensors", "rank-00001.safetensors"]);
    expect(await namesOf({ overwrite: true })).toEqual(
      [0, 1].map((rank) => expect.stringMatching(`^rank-0000${rank}-.+\\.safetensors$`)),
    );
  });

  it("of uneven slices agree on the whole shape", async () => {
    await saveOnRanks(2, (rank) => ({ w: rank === 0 ? f32([2], 0, 1) : f32([1], 2) }), { fileSystem });
    expect([...(await (await loadCheckpoint("/r", { fileSystem })).tensors.w!.data())]).toEqual([0, 1, 2]);
  });

  it.each<[string, string, (rank: number) => CheckpointContents["tensors"], SaveOptions, word?: string]>([
    [
      "another dtype",
      "BAD_DTYPE",
      (rank) => ({ w: rank === 0 ? f32([2], 0, 1) : { dtype: "i32", shape: [2], data: Int32Array.of(2, 3) } }),
      {},
    ],
    [
      "what cannot be copied",
      "DISPOSED",
      (rank) => ({ w: rank === 1 ? disposed() : tensor([1]) }),
      { async: true },
      "dispose",
    ],
    [
      "boxes beside a slice",
      "BAD_SHAPE",
      (rank) => ({
        w: { ...f32([1], 1), ...(rank === 1 && { boxes: [{ offset: [0], size: [1], data: Float32Array.of(1) }] }) },
      }),
      {},
    ],
    [
      "wholes of two shapes",
      "BAD_SHAPE",
      (rank) => ({ w: rank === 1 ? f32([2], 1, 2) : f32([1], 1) }),
      { whole: true },
    ],
  ])(
    "of which one has %s: every rank learns it, and nothing is left",
    async (_, code, tensorsOf, options, word = '"w"') => {
      for (const outcome of await saveOnRanks(2, tensorsOf, { fileSystem, ...options }))
        expect(outcome).toMatchObject({ reason: { code, message: expect.stringContaining(word) } });
      expect(await fileSystem.kind("/r")).toBeUndefined();
    },
  );

  it.each([0, 1])("of which rank %i finds its disk full: every rank learns it, and nothing is left", async (full) => {
    const fault = { at: 0, code: "ENOSPC", only: "write" } as const;
    const disks = (rank: number) => ({
      fileSystem: rank === full ? new FaultyFileSystem(fileSystem, fault) : fileSystem,
    });
    for (const outcome of await saveOnRanks(2, () => ({ w: f32([1], 1) }), disks))
      expect(outcome).toMatchObject({ reason: { code: "IO" } });
    expect(await fileSystem.list("/r")).toEqual([]);
  });

  it("that give the same boxes write them once, and differ only unasked", async () => {
    const save = (step: number, values: number[]) => {
      const boxes = (rank: number) => [{ offset: [0], size: [1], data: Float32Array.of(values[rank]!) }];
      const tensorsOf = (rank: number) => ({ w: { dtype: "f32", shape: [1], boxes: boxes(rank) } });
      return saveOnRanks(2, tensorsOf, { fileSystem, checkReplicas: true }, step);
    };
    for (const outcome of await save(1, [1, 2])) expect(outcome).toMatchObject({ reason: { code: "BAD_STATE" } });
    expect(kinds(await save(2, [1, 1]))).not.toContain("rejected");
    expect((await readManifest(fileSystem, "/r/step-00000002")).files).toHaveLength(1);
  });

  it("of vectors that are cut at multiples are saved as boxes, whatever the layout says of their parameter", async () => {
    const tensorsOf = (rank: number) => {
      const part = tensor(rank === 0 ? [1, 2, 3, 4] : [5, 6]);
      const axis = { name: "rank", size: 2, index: rank, gather: () => [], scatter: () => [] };
      part.placement = { shape: [6], cuts: [{ axis, dim: 0, multiple: 4 }] };
      return { w: f32([3, 1], 1, 2, 3), "w.d": { tensor: part, follows: "w" } };
    };
    const layout: Layout = { mesh: { shape: [2], axes: ["rank"] }, tensors: { w: [null, "rank"] } };
    expect(kinds(await saveOnRanks(2, tensorsOf, { fileSystem, layout }))).not.toContain("rejected");
    const { tensors } = await loadCheckpoint("/r", { fileSystem });
    expect(tensors.w!.shape).toEqual([3, 2]);
    expect(tensors["w.d"]!.tolist()).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("that are copies of whole tensors need a layout that says so", async () => {
    const save = (step: number, own: (rank: number) => number, options: SaveOptions = {}) => {
      const tensorsOf = (rank: number) => ({ w: f32([2], 1, 2), b: f32([2], 3, own(rank)), step: f32([], 1) });
      return saveOnRanks(2, tensorsOf, { fileSystem, ...options }, step);
    };
    const message = expect.stringMatching(/same bytes from all ranks in each of 2.*replicate/);
    for (const outcome of await save(1, () => 4))
      expect(outcome).toMatchObject({ reason: { code: "BAD_STATE", message } });
    expect(kinds(await save(1, () => 4, { layout: replicated(2, "rank") }))).not.toContain("rejected");
    expect(kinds(await save(2, (rank) => rank))).not.toContain("rejected");
  });

  it("may have tensors that others have not, as pipeline stages do", async () => {
    const tensorsOf = (rank: number) => ({ [`stage${rank}`]: f32([1], rank), both: f32([1], 7) });
    await saveOnRanks(2, tensorsOf, { layout: replicated(2, "stage"), fileSystem });
    const { tensors } = await loadCheckpoint("/r", { fileSystem });
    expect(Object.keys(tensors).sort()).toEqual(["both", "stage0", "stage1"]);
  });
});

/** A tensor whose memory is gone. */
function disposed(): Tensor {
  const w = tensor([1]);
  w.dispose();
  return w;
}

describe("an async save", () => {
  const folder = scratchFolder();

  it.each([1, 3])("writes tensors of any length as they were, for %i ranks", async (world) => {
    const few = [0, 1, 70_000, (1 << 20) + 1, 4_200_001, ...Array.from({ length: 6 }, (_, i) => 900_000 + i)];
    const lengths = [...few, ...Array.from({ length: 1000 }, (_, i) => i % 700)];
    const tensors = lengths.map((length, i) => {
      const data = randomBytes(length, i);
      return [`t${i}`, { dtype: "u8", shape: [length], data }] as const;
    });
    const wanted = tensors.map(([, { data }]) => Buffer.from(data));
    const saving = saveCheckpoint(folder.path, { step: 1, tensors }, { async: true, world, sha256: true });
    await saving.copied;
    for (const [, { data }] of tensors) data.fill(0);
    await saving;
    expect(await verifyCheckpoint(folder.path)).toMatchObject({ ok: true });
    const loaded = await loadCheckpoint(folder.path, { as: "plain" });
    const differ = wanted.filter((bytes, i) => Buffer.compare(bytes, loaded.tensors[`t${i}`]!.data) !== 0);
    expect(differ).toEqual([]);
  });

  it("writes what the tensors held when it was called", async () => {
    const data = new Float32Array([1, 2, 3]);
    const saving = saveCheckpoint(
      folder.path,
      { step: 1, tensors: { w: { dtype: "f32", shape: [3], data } } },
      { async: true },
    );
    data.fill(9);
    expect(await saving).toMatchObject({ step: 1 });
    const { tensors } = await loadCheckpoint(folder.path);
    expect([...(await tensors.w!.data())]).toEqual([1, 2, 3]);
  });

  it("one at a time: the next waits, and both are whole", async () => {
    const saves = [1, 2, 3].map((step) =>
      saveCheckpoint(folder.path, { step, tensors: sampleTensors(step) }, { async: true, world: 2 }),
    );
    await Promise.all(saves);
    for (const step of [1, 2, 3]) {
      expect(await verifyCheckpoint(folder.path, { step })).toMatchObject({ ok: true });
      const { tensors } = await loadCheckpoint(folder.path, { step, as: "plain" });
      expect(tensors["fc.weight"]!.data).toEqual(sampleTensors(step)["fc.weight"]!.data);
    }
  });

  it("that fails leaves the older step as it was", async () => {
    await saveCheckpoint(folder.path, { step: 1, tensors: sampleTensors(1) });
    const again = saveCheckpoint(folder.path, { step: 1, tensors: sampleTensors(2) }, { async: true });
    await expect(again).rejects.toMatchObject({ code: "DUPLICATE" });
    const big = { dtype: "u8", shape: [1 << 20], data: randomBytes(1 << 20, 3) };
    const gone = saveCheckpoint(
      `${folder.path}/step-00000001/manifest.json/no`,
      { step: 2, tensors: { big } },
      { async: true },
    );
    await expect(gone).rejects.toMatchObject({ code: "MISSING" });
    expect(await verifyCheckpoint(folder.path)).toMatchObject({ ok: true });
  });
});

it.each([{}, { async: true }, { communicator: singleProcess() }])(
  "a save %# goes where its path led when it was called, though its turn comes when the process stands elsewhere",
  async (options) => {
    let stands = "/here";
    class Relative extends MemoryFileSystem {
      override resolve = (path: string) => (path.startsWith("/") ? path : `${stands}/${path}`);
    }
    const fileSystem = new Relative();
    const saves = [1, 2].map((step) => saveCheckpoint("r", { ...one, step }, { ...options, fileSystem }));
    stands = "/elsewhere";
    expect((await Promise.all(saves)).map(({ path }) => path)).toEqual([1, 2].map((n) => `/here/r/step-0000000${n}`));
  },
);
