import { describe, expect, it } from "vitest";
import { listSteps } from "../../format/steps";
import { loadCheckpoint } from "../../operations";
import type { FileSystem } from "../../stores/file-system";
import { FaultyFileSystem } from "../../testing/disks/faulty-file-system";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { expectCode } from "../../testing/expect-code";
import { localCommunicators } from "../ranks/communicator";
import { saveCheckpoint } from "../save";
import { cleanCheckpoints } from "./clean";
import { sweep } from "./leftovers";
import { endAttempt, newAttempt } from "./owner";
import type { Retention } from "./retention";

const w = { dtype: "U8", shape: [1], data: new Uint8Array(1) };
const losses = [5, 3, 9, 3, 7, 8, 6];

async function kept(keep: number | Retention): Promise<number[]> {
  const fileSystem = new MemoryFileSystem();
  for (const [step, loss] of losses.entries())
    await saveCheckpoint("/r", { step, tensors: { w }, values: { loss, name: "a" } }, { fileSystem, keep });
  return (await listSteps(fileSystem, "/r")).map(({ step }) => step);
}

describe("keep", () => {
  it.each<[number | Retention, number[]]>([
    [2, [5, 6]],
    [{ newest: 2 }, [5, 6]],
    [{ every: 3 }, [0, 3, 6]],
    [{ newest: 2, every: 4 }, [0, 4, 5, 6]],
    [{ best: { value: "loss" } }, [3, 6]],
    [{ best: { value: "loss", count: 2 } }, [1, 3, 6]],
    [{ best: { value: "loss", highest: true } }, [2, 6]],
  ])("%j keeps %j", async (keep, steps) => expect(await kept(keep)).toEqual(steps));

  it.each<[unknown]>([
    [0],
    [{ newest: 0 }],
    [{ every: 1.5 }],
    [{ latest: 2 }],
    [{ best: {} }],
    [{ best: { value: "loss", count: 0 } }],
    [{ best: { value: "Loss" } }],
    [{ best: { value: "name" } }],
  ])("%j is rejected", async (keep) => {
    await expectCode("BAD_ARGUMENT", kept(keep as Retention));
  });
});

it("of ranks all are told what rank 0 lacks, and a step whose value is not known yet is not among the best", async () => {
  const fileSystem = new MemoryFileSystem();
  const keep = { best: { value: "loss" } };
  const save = (step: number, values: { [name: string]: unknown }) =>
    Promise.allSettled(
      localCommunicators(2).map((communicator) =>
        saveCheckpoint(
          "/r",
          {
            step,
            tensors: { w: { ...w, shape: [1 - communicator.rank], data: new Uint8Array(1 - communicator.rank) } },
            values,
          },
          { fileSystem, communicator, keep },
        ),
      ),
    );
  for (const result of await save(0, { lss: 1 }))
    expect(result).toMatchObject({ reason: { code: "BAD_ARGUMENT", message: expect.stringContaining('["lss"]') } });
  for (const [step, loss] of [null, 2, null, 3, null].entries())
    expect((await save(step, { loss })).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
  expect((await listSteps(fileSystem, "/r")).map(({ step }) => step)).toEqual([1, 4]);
});

describe("leftovers", () => {
  const alive = newAttempt();
  const dead = alive.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
  const elsewhere = alive.replace(/^[^.]+\.[0-9a-f]+/, "elsewhere.0123456789ab");

  async function diskWith(...names: string[]): Promise<MemoryFileSystem> {
    const fileSystem = new MemoryFileSystem();
    fileSystem.modified = async () => Date.now();
    for (const name of names) await fileSystem.makeFolder(`/r/step-00000009.tmp-${name}`);
    return fileSystem;
  }

  it("of the dead are swept by the next save, those of the living and the unknown are not", async () => {
    const fileSystem = await diskWith(alive, dead, elsewhere, "before-attempts-had-owners");
    await saveCheckpoint("/r", { step: 1, tensors: { w } }, { fileSystem });
    expect((await fileSystem.list("/r")).map(({ name }) => name)).toEqual([
      `step-00000009.tmp-${alive}`,
      `step-00000009.tmp-${elsewhere}`,
      "step-00000009.tmp-before-attempts-had-owners",
      "step-00000001",
    ]);
  });

  it("that nobody can be asked about go once nothing in them has changed for an hour", async () => {
    const fileSystem = await diskWith(elsewhere);
    const folder = `/r/step-00000009.tmp-${elsewhere}`;
    await fileSystem.open(`${folder}/rank-00000.safetensors`, "create");
    // The folder is old, but a file in it is still being written.
    fileSystem.modified = async (path) => Date.now() - (path === folder ? 7_200_000 : 0);
    await saveCheckpoint("/r", { step: 1, tensors: { w } }, { fileSystem });
    expect(await fileSystem.kind(folder)).toBe("folder");
    fileSystem.modified = async () => Date.now() - 7_200_000;
    await saveCheckpoint("/r", { step: 2, tensors: { w } }, { fileSystem });
    expect(await fileSystem.kind(folder)).toBeUndefined();
  });

  it("are cleaned by hand: told, removed, forced", async () => {
    const fileSystem = await diskWith(alive, dead, elsewhere);
    const path = (attempt: string) => `/r/step-00000009.tmp-${attempt}`;
    expect((await cleanCheckpoints("/r", { fileSystem, dryRun: true })).removed).toEqual([path(dead)]);
    expect(await fileSystem.list("/r")).toHaveLength(3);
    const { removed, kept: stays } = await cleanCheckpoints("/r", { fileSystem, force: true });
    expect(removed).toEqual([path(dead), path(elsewhere)]);
    expect(stays).toEqual([{ path: path(alive), owner: "alive" }]);
    endAttempt(alive);
    expect((await cleanCheckpoints("/r", { fileSystem })).removed).toEqual([path(alive)]);
  });
});

describe("a step that was set aside by a save that died", () => {
  const owner = newAttempt();
  const aside = `/r/step-00000001.old-${owner}.0`;
  const other = { step: 2, tensors: { w } };

  async function diskWith(isReplaced: boolean): Promise<MemoryFileSystem> {
    const fileSystem = new MemoryFileSystem();
    await saveCheckpoint("/r", { step: 1, tensors: { w }, values: { old: true } }, { fileSystem });
    await fileSystem.rename("/r/step-00000001", aside);
    if (isReplaced) await saveCheckpoint("/r", { step: 1, tensors: { w } }, { fileSystem, overwrite: true });
    return fileSystem;
  }

  it("is kept while its owner lives, and gets its name back from the next save", async () => {
    const fileSystem = await diskWith(false);
    await saveCheckpoint("/r", other, { fileSystem });
    expect((await listSteps(fileSystem, "/r")).map(({ path }) => path)).toEqual([aside, "/r/step-00000002"]);
    expect((await cleanCheckpoints("/r", { fileSystem })).removed).toEqual([]);
    endAttempt(owner);
    await expectCode("DUPLICATE", saveCheckpoint("/r", { step: 1, tensors: { w } }, { fileSystem }));
    expect((await fileSystem.list("/r")).map(({ name }) => name).sort()).toEqual(["step-00000001", "step-00000002"]);
    expect((await loadCheckpoint("/r", { fileSystem, step: 1 })).values).toEqual({ old: true });
  });

  it("goes once it is replaced, when that is durable", async () => {
    const fileSystem = await diskWith(true);
    expect((await fileSystem.list("/r")).map(({ name }) => name)).toEqual(["step-00000001"]);
    await fileSystem.makeFolder(aside);
    const calls: string[] = [];
    fileSystem.syncFolder = async (path) => void calls.push(`sync ${path}`);
    fileSystem.remove = async (path) => void calls.push(`remove ${path}`);
    await sweep(fileSystem, "/r");
    expect(calls).toEqual(["sync /r", `remove ${aside}`]);
  });
});

describe("a step's earlier save that is still set aside does not come back when the step goes", () => {
  async function replaced() {
    const fileSystem = new MemoryFileSystem();
    for (const folder of ["/old", "/r"])
      await saveCheckpoint(folder, { step: 1, tensors: { w }, values: { folder } }, { fileSystem });
    const dead = newAttempt();
    endAttempt(dead);
    await fileSystem.rename("/old/step-00000001", `/r/step-00000001.old-${dead}.0`);
    return fileSystem;
  }
  const save = (fileSystem: FileSystem) => saveCheckpoint("/r", { step: 2, tensors: { w } }, { fileSystem, keep: 1 });

  it("where an earlier sweep has failed", async () => {
    const fileSystem = await replaced();
    await save(new FaultyFileSystem(fileSystem, { at: 0, only: "syncFolder" }));
    expect((await fileSystem.list("/r")).map(({ name }) => name)).toEqual(["step-00000002"]);
  });

  it("where it cannot be removed: then both stay", async () => {
    const fileSystem = await replaced();
    const { remove } = fileSystem;
    fileSystem.remove = (path) =>
      path.includes(".old-") ? Promise.reject(new Error("no")) : remove.call(fileSystem, path);
    const { warnings } = await save(fileSystem);
    expect(warnings).toHaveLength(1);
    expect((await listSteps(fileSystem, "/r")).map(({ step }) => step)).toEqual([1, 2]);
    expect((await loadCheckpoint("/r", { step: 1, fileSystem })).values).toEqual({ folder: "/r" });
  });
});

it("of two saves of one step that are set aside readers and the next save choose the same", async () => {
  for (const isReversed of [false, true]) {
    const fileSystem = new MemoryFileSystem();
    for (const [folder, attempt] of [
      ["/a", newAttempt()],
      ["/b", newAttempt()],
    ] as const) {
      await saveCheckpoint(folder, { step: 1, tensors: { w }, values: { folder } }, { fileSystem });
      await fileSystem.makeFolder("/r");
      await fileSystem.rename(`${folder}/step-00000001`, `/r/step-00000001.old-${attempt}.0`);
      endAttempt(attempt);
    }
    const { list } = fileSystem;
    const seen = async () => (await loadCheckpoint("/r", { step: 1, fileSystem })).values;
    const before = await seen();
    if (isReversed) fileSystem.list = async (path) => (await list.call(fileSystem, path)).reverse();
    expect(await seen()).toEqual(before);
    await saveCheckpoint("/r", { step: 2, tensors: { w } }, { fileSystem });
    expect(await seen()).toEqual(before);
  }
});

it("half of a step that was set aside does not take the name of a whole one", async () => {
  const fileSystem = new MemoryFileSystem();
  await saveCheckpoint("/a", { step: 1, tensors: { w }, values: { id: 7 } }, { fileSystem });
  const [half, whole] = [newAttempt(), newAttempt()].sort();
  for (const attempt of [half!, whole!]) endAttempt(attempt);
  await fileSystem.makeFolder(`/r/step-00000001.old-${half}.0`);
  await fileSystem.rename("/a/step-00000001", `/r/step-00000001.old-${whole}.0`);
  await saveCheckpoint("/r", { step: 2, tensors: { w } }, { fileSystem });
  expect((await fileSystem.list("/r")).map(({ name }) => name).sort()).toEqual(["step-00000001", "step-00000002"]);
  expect((await loadCheckpoint("/r", { step: 1, fileSystem })).values).toEqual({ id: 7 });
});
