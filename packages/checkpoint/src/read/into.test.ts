/** Loading into what is there already: in place, all of it or nothing. */
import { init, parameter, type Tensor, tensor, tensorFromBytes, zeros } from "@opt/core";
import { beforeEach, describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { memoryFiles } from "../../testing/disks/memory-files";
import { expectCode } from "../../testing/expect-code";
import { tfjsFolder } from "../../testing/files/made-files";
import { randomBytes } from "../../testing/fixtures";
import type { PlainTensor } from "../format/tensors";
import type { Layout } from "../layout/layout";
import { loadCheckpoint } from "../operations";
import { saveCheckpoint } from "../save/save";
import type { LoadOptions } from "./load";

/** Longer than what is read at once, and its boxes are columns. */
const [ROWS, COLUMNS] = [1500, 1100];
const bytes = randomBytes(4 * ROWS * COLUMNS, 1);
const layout: Layout = { mesh: { shape: [2], axes: ["x"] }, tensors: { "large*": [null, "x"], "*": "replicate" } };
const SHARDS = ["rank-00000.safetensors", "rank-00001.safetensors"].map((name) => `/run/step-00000001/${name}`);

let disk: MemoryFileSystem;
const load = (into: Record<string, Tensor | PlainTensor>, options: LoadOptions = {}) =>
  loadCheckpoint("/run", { fileSystem: disk, into, ...options });
const model = () => ({ large: zeros([ROWS, COLUMNS]), half: zeros([3], { dtype: "f16" }) });
const isZero = (one: Tensor) => one.bytesSync().every((byte) => byte === 0);

beforeEach(async () => {
  await init("js");
  disk = new MemoryFileSystem();
  const large = tensorFromBytes(bytes, [ROWS, COLUMNS], { dtype: "f32" });
  const half = tensor([1, 2, 3], { dtype: "f16" });
  const plain = { dtype: "I64", shape: [2], data: BigInt64Array.of(4n, 5n) };
  await saveCheckpoint("/run", { step: 1, tensors: { large, half, plain } }, { fileSystem: disk, layout });
  disk.bytesRead = 0;
});

describe.each([
  ["a disk, read twice and held once", true],
  ["a far store, read once and held twice", false],
])("%s", (_, isNear) => {
  beforeEach(() => {
    disk.isNear = isNear;
  });

  it("fills tensors and plain tensors where they are", async () => {
    const [into, around] = [model(), new BigInt64Array(4).fill(9n)];
    const data = around.subarray(1, 3);
    const view = into.large.detach();
    const { tensors, unverified, bytesRead } = await load({ ...into, plain: { dtype: "I64", shape: [2], data } });
    expect(tensors.large).toBe(into.large);
    expect(Buffer.compare(view.bytesSync(), bytes)).toBe(0);
    expect([...into.half.dataSync(), ...around]).toEqual([1, 2, 3, 9n, 4n, 5n, 9n]);
    expect(unverified).toEqual([]);
    expect(bytesRead).toBe((bytes.length + 6 + 16) * (isNear ? 2 : 1));
  });

  it.each([
    ["changed", "CORRUPT", (shard: Uint8Array) => shard.fill(1, -1)],
    ["missing", "CORRUPT", (shard: Uint8Array) => shard.subarray(0, -1)],
  ])("changes nothing where a byte is %s", async (_, code, damaged) => {
    const shard = damaged(disk.contents(SHARDS[1]!).slice());
    await disk.remove(SHARDS[1]!);
    const file = await disk.open(SHARDS[1]!, "create");
    await file.write(shard, 0);
    const into = model();
    await expect(load(into)).rejects.toMatchObject({ code });
    expect([isZero(into.large), isZero(into.half)]).toEqual([true, true]);
  });

  it("fills the part that a rank holds", async () => {
    const into = { large: zeros([ROWS, COLUMNS / 2]) };
    await load(into, { layout, rank: 1 });
    const whole = new Float32Array(bytes.slice().buffer);
    const row = Uint8Array.from(new Uint8Array(whole.slice(COLUMNS + COLUMNS / 2, 2 * COLUMNS).buffer));
    expect(Buffer.compare(into.large.bytesSync().subarray(2 * COLUMNS, 4 * COLUMNS), row)).toBe(0);
  });

  it("rejects disposed tensors before any changes", async () => {
    const into = model();
    into.half.dispose();
    await expect(load(into)).rejects.toMatchObject({ code: "DISPOSED" });
    expect(isZero(into.large)).toBe(true);
  });

  it("leaves no tensors behind, where it fails or not", async () => {
    const { device, ...into } = { ...model(), device: await init("js") };
    const before = device.memory();
    await load(into, { names: ["half"] });
    await expect(load({ ...into, absent: into.half })).rejects.toMatchObject({ code: "MISSING" });
    disk.contents(SHARDS[0]!).fill(1, -1);
    await load(into).catch(() => {});
    expect(device.memory()).toEqual(before);
  });
});

it("reads once where nothing is verified", async () => {
  const into = model();
  await load(into, { verify: false });
  const read = disk.bytesRead;
  disk.bytesRead = 0;
  await load(into);
  expect(disk.bytesRead - read).toBe(bytes.length + 6);
  expect(Buffer.compare(into.large.bytesSync(), bytes)).toBe(0);
});

it("tells of the bytes of both readings", async () => {
  const seen: number[] = [];
  await load(model(), { progress: ({ bytes, total }) => seen.push(bytes / total) });
  expect([seen[0]! < 0.6, seen.at(-1)]).toEqual([true, 1]);
});

/** Does something whenever tensors are read, before their bytes are there. */
function whileReading(body: () => void): void {
  const open = disk.open.bind(disk);
  disk.open = async (path, mode) => {
    const file = await open(path, mode);
    const read: typeof file.read = (target, position) => {
      if (SHARDS.includes(path)) body();
      return file.read(target, position);
    };
    return { ...file, read };
  };
}

it("leaves alone who takes the memory of a tensor that is disposed meanwhile", async () => {
  const { half } = model();
  const others: Tensor[] = [];
  whileReading(() => {
    half.dispose();
    others.push(zeros([3], { dtype: "f16" }));
  });
  await load({ half }, { verify: false });
  expect(others.every(isZero)).toBe(true);
});

it.each([
  ["there", false],
  ["rejected", true],
])(
  "counts as an overwrite once the bytes are %s: what was computed before has no gradient any more",
  async (_, fails) => {
    const large = parameter(new Float32Array(ROWS * COLUMNS).fill(3), { shape: [ROWS, COLUMNS] });
    let loss: Tensor | undefined;
    whileReading(() => {
      loss = large.mul(large).sum();
      if (fails) throw new Error("the disk is gone");
    });
    const loading = load({ large }, { verify: false });
    if (fails) await expect(loading).rejects.toThrow("the disk is gone");
    else await loading;
    expect(() => loss!.backward()).toThrow(expect.objectContaining({ code: "CHANGED" }));
  },
);

describe("where the file and the model differ", () => {
  it("tells what the file has beyond the model", async () => {
    const { half } = model();
    expect(await load({ half })).toMatchObject({ missing: [], unexpected: ["large", "plain"] });
    expect(await load({ half }, { exclude: ["plain"] })).toMatchObject({ unexpected: ["large"] });
    expect(await loadCheckpoint("/run", { fileSystem: disk, names: ["half"] })).toMatchObject({ unexpected: [] });
  });

  it("throws for what the file lacks, and names what is near; strict: false lists it", async () => {
    const { half } = model();
    const into = { half, hulf: half };
    await expect(load(into)).rejects.toThrow(/no tensor "hulf"\. The nearest names are half, .*strict: false/);
    expect(half.dataSync()[0]).toBe(0);
    expect(await load(into, { strict: false })).toMatchObject({ missing: ["hulf"], tensors: { half } });
    expect([...half.dataSync()]).toEqual([1, 2, 3]);
    const named = await loadCheckpoint("/run", { fileSystem: disk, names: ["half", "h*x"], strict: false });
    expect([named.missing, Object.keys(named.tensors)]).toEqual([["h*x"], ["half"]]);
    expect((await load({ hulf: half }, { strict: false })).tensors).toEqual({});
  });

  it("rejects strict without what it is about, and exclude of all that there is", async () => {
    for (const strict of [true, false])
      await expectCode("BAD_ARGUMENT", loadCheckpoint("/run", { fileSystem: disk, strict }));
    const message = await expectCode("BAD_ARGUMENT", loadCheckpoint("/run", { fileSystem: disk, exclude: ["*"] }));
    expect(message).toBe(
      '[exclude] it must leave a tensor, got ["*"]. Leave out fewer. names: [] loads the step and values alone.',
    );
    expect((await loadCheckpoint("/run", { fileSystem: disk, names: [] })).tensors).toEqual({});
  });

  it("loads under other names", async () => {
    const { half } = model();
    const { tensors, unexpected } = await load({ "m.half": half }, { rename: { "*": "m.*" }, exclude: ["plain"] });
    expect([tensors["m.half"], unexpected]).toEqual([half, ["m.large"]]);
  });

  it.each([
    ["names", { names: ["hulf"] }],
    ["exclude", { exclude: ["hulf*"] }],
    ["rename", { rename: { "hulf*": "x" } }],
    ["dtype", { dtype: { hulf: "f32" } }],
    ["slices", { slices: { hulf: [[0, 1]] } }],
  ] as const)("rejects a pattern of %s that matches nothing", async (option, options) => {
    const loading = loadCheckpoint("/run", { fileSystem: disk, ...(options as LoadOptions) });
    await expect(loading).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(
        new RegExp(`^\\[${option}\\] its pattern "hulf\\*?" matches no tensor\\. The nearest names are half,`),
      ),
    });
  });
});

describe("square kernels of systems that have [in, out]", () => {
  const square = () => zeros([2, 2]);
  const opened = (options: LoadOptions) =>
    loadCheckpoint("/root/model.json", { fileSystem: memoryFiles(tfjsFolder()), ...options });
  const rename = { "dense/kernel*": "kernel*" };

  it("do not fill a tensor whose order nobody knows, by any name; states neither", async () => {
    const into = { kernel: square() };
    await expect(opened({ into, rename })).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
    await expect(opened({ into, rename })).rejects.toThrow(
      /"kernel"\] TF\.js has kernels as \[in, out\].*asStored: true/,
    );
    expect(isZero(into.kernel)).toBe(true);
    await expect(opened({ into: { "dense/kernel/m": square() } })).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
  });

  it("do as they are stored where that is meant, and load without into", async () => {
    const { tensors } = await opened({});
    const into = { kernel: square() };
    await opened({ into, rename, asStored: true });
    expect(into.kernel.tolist()).toEqual(tensors["dense/kernel"]!.tolist());
  });
});
