import type { ErrorCode } from "@opt/core";
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../../testing/disks/memory-file-system";
import { expectCode } from "../../../testing/expect-code";
import { type Best, listSteps } from "../../format/steps";
import { loadCheckpoint } from "../../operations";
import { mergeCheckpoint } from "../../rewrite/merge";
import type { FileSystem } from "../../stores/file-system";
import { localCommunicators } from "../ranks/communicator";
import { saveCheckpoint } from "../save";
import { cleanCheckpoints } from "./clean";
import { endAttempt, newAttempt } from "./owner";
import { type PruneOptions, pruneCheckpoints } from "./prune";
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
    [{ last: 2 }, [5, 6]],
    [{ every: 3 }, [0, 3, 6]],
    [{ last: 2, every: 4 }, [0, 4, 5, 6]],
    [{ best: { value: "loss" } }, [3, 6]],
    [{ best: { value: "loss", count: 2 } }, [1, 3, 6]],
    [{ best: { value: "loss", highest: true } }, [2, 6]],
  ])("%j keeps %j", async (keep, steps) => expect(await kept(keep)).toEqual(steps));

  it.each<[unknown]>([
    [0],
    [{ last: 0 }],
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

describe("prune", () => {
  const run = async () => {
    const fileSystem = new MemoryFileSystem();
    for (const [step, loss] of losses.entries())
      await saveCheckpoint("/r", { step, tensors: { w }, values: { loss } }, { fileSystem });
    return fileSystem;
  };

  it.each<[number | Retention, number[]]>([
    [2, [5, 6]],
    [{ every: 3 }, [0, 3, 6]],
    [{ last: 2, best: { value: "loss", count: 2 } }, [1, 3, 5, 6]],
    [{ best: { value: "loss", highest: true } }, [2, 6]],
  ])("%j keeps %j, as saving does", async (keep, steps) => {
    const fileSystem = await run();
    const told = await pruneCheckpoints("/r", { keep, fileSystem, dryRun: true });
    expect([told.kept, (await listSteps(fileSystem, "/r")).length]).toEqual([steps, losses.length]);
    expect(await pruneCheckpoints("/r", { keep, fileSystem })).toEqual(told);
    expect((await fileSystem.list("/r")).map(({ name }) => Number(name.slice(5)))).toEqual(steps);
  });

  it("leaves a step that another save is replacing", async () => {
    const fileSystem = await run();
    await fileSystem.makeFolder(`/r/step-00000001.tmp-${newAttempt()}`);
    expect((await pruneCheckpoints("/r", { keep: 1, fileSystem })).kept).toEqual([1, 6]);
  });

  it.each<[ErrorCode, object]>([
    ["BAD_ARGUMENT", { keep: {} }],
    ["BAD_ARGUMENT", {}],
    ["BAD_ARGUMENT", { keep: 0 }],
    ["BAD_ARGUMENT", { keep: { newest: 1 } }],
    ["BAD_ARGUMENT", { keep: { best: { value: "Loss" } } }],
  ])("throws %s for %j, and removes nothing", async (code, options) => {
    const fileSystem = await run();
    await expectCode(code, pruneCheckpoints("/r", { fileSystem, ...(options as PruneOptions) }));
    expect(await listSteps(fileSystem, "/r")).toHaveLength(losses.length);
  });

  it("throws MISSING where there are no steps", async () => {
    const fileSystem = new MemoryFileSystem();
    await expectCode("MISSING", pruneCheckpoints("/r", { keep: 1, fileSystem }));
    await fileSystem.makeFolder("/r");
    await expectCode("MISSING", pruneCheckpoints("/r", { keep: 1, fileSystem }));
  });
});

describe("the best step of a run is loaded by the number that it was kept for", () => {
  const run = async () => {
    const fileSystem = new MemoryFileSystem();
    for (const [step, loss] of [...losses, null].entries())
      await saveCheckpoint("/r", { step, tensors: { w }, values: { loss } }, { fileSystem });
    return fileSystem;
  };

  it.each<[Best, number]>([
    [{ value: "loss" }, 3],
    [{ value: "loss", highest: true }, 2],
  ])("%j is step %i", async (best, step) => {
    expect(await loadCheckpoint("/r", { fileSystem: await run(), best })).toMatchObject({ step });
  });

  it.each<[ErrorCode, object]>([
    ["MISSING", { best: { value: "accuracy" } }],
    ["BAD_ARGUMENT", { best: { value: "loss" }, step: 1 }],
    ["BAD_ARGUMENT", { best: { name: "loss" } }],
  ])("%s for %j", async (code, options) => {
    await expectCode(code, loadCheckpoint("/r", { fileSystem: await run(), ...options }));
  });

  it("UNSUPPORTED for a checkpoint of another system", async () => {
    const fileSystem = await run();
    await mergeCheckpoint("/r", "/m.safetensors", { fileSystem });
    await expectCode("UNSUPPORTED", loadCheckpoint("/m.safetensors", { fileSystem, best: { value: "loss" } }));
  });
});

it("of ranks all are told what rank 0 lacks, and a step whose value is not known yet is not among the best", async () => {
  const fileSystem = new MemoryFileSystem();
  const keep = { best: { value: "loss" } };
  const save = (step: number, values: { [name: string]: unknown }) =>
    Promise.allSettled(
      localCommunicators(2).map((communicator) => {
        const length = 1 - communicator.rank;
        const tensors = { w: { ...w, shape: [length], data: new Uint8Array(length) } };
        return saveCheckpoint("/r", { step, tensors, values }, { fileSystem, communicator, keep });
      }),
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

describe("a step that another save is replacing", () => {
  const save = (fileSystem: FileSystem, step: number, options: { overwrite?: boolean; keep?: number } = {}) =>
    saveCheckpoint("/r", { step, tensors: { w } }, { fileSystem, ...options });

  it("stays until that save has ended", async () => {
    const fileSystem = new MemoryFileSystem();
    await save(fileSystem, 1);
    const attempt = newAttempt();
    await fileSystem.makeFolder(`/r/step-00000001.tmp-${attempt}`);
    await save(fileSystem, 2, { keep: 1 });
    expect((await listSteps(fileSystem, "/r")).map(({ step }) => step)).toEqual([1, 2]);
    endAttempt(attempt);
    await save(fileSystem, 3, { keep: 1 });
    expect((await fileSystem.list("/r")).map(({ name }) => name)).toEqual(["step-00000003"]);
  });

  it("keeps its own files when that save has died, and loses the others'", async () => {
    const fileSystem = new MemoryFileSystem();
    await save(fileSystem, 1);
    const attempt = newAttempt();
    endAttempt(attempt);
    await fileSystem.makeFolder(`/r/step-00000001.tmp-${attempt}`);
    await fileSystem.open(`/r/step-00000001/rank-00001-${attempt.slice(-12)}.safetensors`, "create");
    await fileSystem.open("/r/step-00000001/notes.txt", "create");
    await save(fileSystem, 2);
    const names = (await fileSystem.list("/r/step-00000001")).map(({ name }) => name).sort();
    expect(names).toEqual(["manifest.json", "notes.txt", "rank-00000.safetensors"]);
    expect((await fileSystem.list("/r")).map(({ name }) => name)).toEqual(["step-00000001", "step-00000002"]);
  });

  it("keeps files of saves at work here and elsewhere when another that replaced it has died", async () => {
    const fileSystem = new MemoryFileSystem();
    fileSystem.modified = async () => Date.now();
    await save(fileSystem, 1);
    const here = newAttempt();
    const elsewhere = `elsewhere.0123456789ab.7.7.0-${"e".repeat(12)}`;
    const fileOf = (attempt: string) => `rank-00001-${attempt.slice(-12)}.safetensors`;
    const gone = newAttempt();
    endAttempt(gone);
    for (const attempt of [here, elsewhere, gone]) {
      await fileSystem.makeFolder(`/r/step-00000001.tmp-${attempt}`);
      await fileSystem.open(`/r/step-00000001/${fileOf(attempt)}`, "create");
    }
    await save(fileSystem, 2);
    endAttempt(here);
    const names = (await fileSystem.list("/r/step-00000001")).map(({ name }) => name).sort();
    expect(names).toEqual(["manifest.json", "rank-00000.safetensors", fileOf(here), fileOf(elsewhere)].sort());
  });

  it("leaves no file of the replaced one, with a name of its save or without", async () => {
    const fileSystem = new MemoryFileSystem();
    for (const overwrite of [false, true, true]) {
      await save(fileSystem, 1, { overwrite });
      expect(await fileSystem.list("/r/step-00000001")).toHaveLength(2);
      expect((await loadCheckpoint("/r", { fileSystem })).step).toBe(1);
    }
  });
});
