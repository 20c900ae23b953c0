/** What a save tells whoever waits for it: when tensors may be changed, how far it is, what could not be tidied up, how it ended. */
import { describe, expect, it, vi } from "vitest";
import { FaultyFileSystem } from "../../testing/disks/faulty-file-system";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { sampleTensors } from "../../testing/fixtures";
import { readManifest } from "../format/manifest";
import { verifyCheckpoint } from "../read/verify";
import { memoryFileSystem } from "../stores/memory";
import { localCommunicators, singleProcess } from "./ranks/communicator";
import { saveCheckpoint } from "./save";

const data = Float32Array.of(1, 2);
const one = { step: 1, tensors: { w: { dtype: "f32", shape: [2], data } } };
const isThere = (disk: MemoryFileSystem) => disk.kind("/r/step-00000001").then((kind) => kind === "folder");

describe("copied", () => {
  it("resolves at the end without async", async () => {
    const fileSystem = new MemoryFileSystem();
    await saveCheckpoint("/r", one, { fileSystem }).copied;
    expect(await isThere(fileSystem)).toBe(true);
  });

  it("resolves before anything is written with async", async () => {
    const fileSystem = new MemoryFileSystem();
    const saving = saveCheckpoint("/r", one, { fileSystem, async: true });
    await saving.copied;
    expect(await isThere(fileSystem)).toBe(false);
    await saving;
    expect(await isThere(fileSystem)).toBe(true);
  });

  it("rejects as the save does, and nobody has to look", async () => {
    const tensors = { w: { dtype: "f32", shape: [2], data: Float32Array.of(1) } };
    const saving = saveCheckpoint("/r", { step: 1, tensors }, { fileSystem: new MemoryFileSystem(), async: true });
    await expect(saving).rejects.toMatchObject({ code: "BAD_SHAPE" });
    await expect(saving.copied).rejects.toMatchObject({ code: "BAD_SHAPE" });
  });
});

it("reports progress and records SHA-256 when asked", async () => {
  const fileSystem = new MemoryFileSystem();
  const seen: number[] = [];
  const progress = ({ bytes, total }: { bytes: number; total: number }) => seen.push(bytes / total);
  const { path } = await saveCheckpoint(
    "/r",
    { step: 1, tensors: sampleTensors(1) },
    { fileSystem, progress, sha256: true },
  );
  expect(seen.at(-1)).toBe(1);
  const { files } = await readManifest(fileSystem, path);
  expect(files[0]!.sha256).toMatch(/^[0-9a-f]{64}$/);
  expect(await verifyCheckpoint(path, { fileSystem })).toMatchObject({ ok: true });
});

it("records no SHA-256 unasked, and keeps the values", async () => {
  const fileSystem = new MemoryFileSystem();
  const { path, step } = await saveCheckpoint("/r", { ...one, step: 7, values: { epoch: 2 } }, { fileSystem });
  const { files, values } = await readManifest(fileSystem, path);
  expect([step, files[0]!.sha256, values]).toEqual([7, undefined, { epoch: 2 }]);
});

it.each([0, 1])("what is rejected of rank %s alone is told to all, and the next save goes on", async (wrong) => {
  const fileSystem = new MemoryFileSystem();
  const communicators = localCommunicators(3);
  const saveAll = (step: number, loss: (rank: number) => number, async = false) =>
    Promise.allSettled(
      communicators.map((communicator) => {
        const contents = {
          step,
          tensors: { w: sampleTensors(1)["fc.weight"]! },
          values: { loss: loss(communicator.rank) },
        };
        return saveCheckpoint("run", contents, { communicator, whole: true, fileSystem, async });
      }),
    );
  for (const async of [false, true]) {
    const rejected = await saveAll(1, (rank) => (rank === wrong ? Number.NaN : 1), async);
    for (const one of rejected) expect(one).toMatchObject({ status: "rejected", reason: { code: "BAD_ARGUMENT" } });
  }
  const saved = await saveAll(2, () => 1);
  expect(saved.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
});

it("ranks whose step has its name, but not for sure after a power cut, reject", async () => {
  const disk = new MemoryFileSystem();
  const counting = new FaultyFileSystem(disk);
  let syncs = 0;
  counting.syncFolder = async (path) => {
    // The step's own folder first, then its parent, which has the name.
    if (path === "/r" && ++syncs === 1) throw Object.assign(new Error("no"), { code: "EIO" });
  };
  const saves = localCommunicators(2).map((communicator) =>
    saveCheckpoint("/r", one, { communicator, whole: true, fileSystem: communicator.rank === 0 ? counting : disk }),
  );
  for (const outcome of await Promise.allSettled(saves)) expect(outcome).toMatchObject({ reason: { code: "IO" } });
});

it("a save of ranks into a store shows no sign once it has ended", async () => {
  vi.useFakeTimers();
  const fileSystem = memoryFileSystem();
  await saveCheckpoint("r", one, { communicator: singleProcess(), fileSystem });
  await vi.advanceTimersByTimeAsync(900_000);
  vi.useRealTimers();
  expect((await fileSystem.list("r")).map(({ name }) => name)).toEqual(["step-00000001"]);
});

describe("a rank whose communicator fails", () => {
  const failing = (method: "gather" | "broadcast", at: number) => {
    const communicator = singleProcess();
    let calls = 0;
    const call = async (value: never) => {
      if (calls++ === at) throw new Error("the line is dead");
      return communicator[method](value);
    };
    return {
      ...communicator,
      size: 1,
      rank: 0,
      gather: communicator.gather,
      broadcast: communicator.broadcast,
      [method]: call,
    };
  };

  it.each([
    ["before it writes", "gather", 0],
    ["before the commit", "gather", 1],
  ] as const)("%s leaves nothing", async (_, method, at) => {
    const fileSystem = new MemoryFileSystem();
    const saving = saveCheckpoint("/r", one, { communicator: failing(method, at), fileSystem });
    await expect(saving).rejects.toThrow("the line is dead");
    expect(await fileSystem.list("/r").catch(() => [])).toEqual([]);
  });

  it("after the commit: the step exists, and that is told", async () => {
    const fileSystem = new MemoryFileSystem();
    const saving = saveCheckpoint("/r", one, { communicator: failing("broadcast", 1), fileSystem });
    expect(await saving).toEqual({ path: "/r/step-00000001", step: 1, warnings: [] });
    expect(await verifyCheckpoint("/r", { fileSystem })).toMatchObject({ ok: true });
  });
});
