// Saves into a store that renames nothing: the manifest, put last, is the commit.
import { expect, it } from "vitest";
import { loadCheckpoint } from "../operations";
import { mergeCheckpoint } from "../read/merge";
import { reshardCheckpoint } from "../read/reshard";
import { verifyCheckpoint } from "../read/verify";
import { memoryFileSystem } from "../stores/memory";
import { fail, objectFileSystem } from "../stores/objects";
import { expectCode } from "../testing/expect-code";
import { sampleTensors } from "../testing/fixtures";
import { localCommunicators } from "./ranks/communicator";
import { saveCheckpoint } from "./save";
import { cleanCheckpoints } from "./step/clean";
import { newAttempt } from "./step/owner";

const contents = (step: number) => ({ step, tensors: sampleTensors(step), values: { epoch: step } });
const names = async (fileSystem: ReturnType<typeof memoryFileSystem>, folder = "run") =>
  (await fileSystem.list(folder)).map(({ name }) => name).sort();

async function expectWhole(fileSystem: ReturnType<typeof memoryFileSystem>, step: number, path = "run") {
  const loaded = await loadCheckpoint(path, { fileSystem, step, as: "plain" });
  expect(loaded.values).toEqual({ epoch: step });
  for (const [name, { data }] of Object.entries(sampleTensors(step))) expect(loaded.tensors[name]!.data).toEqual(data);
}

it("saves, loads, verifies, merges and re-slices, and leaves nothing else behind", async () => {
  const fileSystem = memoryFileSystem();
  const { path } = await saveCheckpoint("run", contents(1), { fileSystem, world: 3 });
  expect(path).toBe("run/step-00000001");
  await saveCheckpoint("./run/", contents(2), { fileSystem, async: true, sha256: true });
  expect(await names(fileSystem)).toEqual(["step-00000001", "step-00000002"]);
  await expectWhole(fileSystem, 1);
  expect(await verifyCheckpoint("run", { fileSystem })).toMatchObject({ ok: true, tensors: 5 });
  await reshardCheckpoint("run", "other", { fileSystem, ranks: 2, step: 1 });
  await expectWhole(fileSystem, 1, "other");
  await mergeCheckpoint("run", "whole.safetensors", { fileSystem });
  const merged = await loadCheckpoint("whole.safetensors", { fileSystem, as: "plain" });
  expect({ step: merged.step, values: merged.values }).toEqual({ step: 2, values: { epoch: 2 } });
  expect(fileSystem.blob("whole.safetensors").size).toBeGreaterThan(400);
});

it("several ranks save together", async () => {
  const fileSystem = memoryFileSystem();
  const saves = localCommunicators(3).map((communicator) =>
    saveCheckpoint("run", contents(4), { fileSystem, whole: true, communicator }),
  );
  await Promise.all(saves);
  await expectWhole(fileSystem, 4);
  expect(await names(fileSystem)).toEqual(["step-00000004"]);
});

it("rejects a step that exists, replaces it when asked, and keeps the newest", async () => {
  const fileSystem = memoryFileSystem();
  for (const step of [1, 2, 3]) await saveCheckpoint("run", contents(step), { fileSystem, keep: 2 });
  expect(await names(fileSystem)).toEqual(["step-00000002", "step-00000003"]);
  await expectCode("DUPLICATE", saveCheckpoint("run", contents(3), { fileSystem }));
  await saveCheckpoint("run", { ...contents(3), values: { epoch: 9 } }, { fileSystem, overwrite: true });
  expect((await loadCheckpoint("run", { fileSystem })).values).toEqual({ epoch: 9 });
  expect(await names(fileSystem, "run/step-00000003")).toHaveLength(2);
});

it("of two saves of one step at the same moment one wins, and the other's files go", async () => {
  const fileSystem = memoryFileSystem();
  const saves = [1, 2].map((epoch) => saveCheckpoint("run", { ...contents(5), values: { epoch } }, { fileSystem }));
  const outcomes = await Promise.allSettled(saves);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const winner = outcomes.findIndex(({ status }) => status === "fulfilled") + 1;
  expect((await loadCheckpoint("run", { fileSystem })).values).toEqual({ epoch: winner });
  expect(await names(fileSystem, "run/step-00000005")).toHaveLength(2);
  expect(await names(fileSystem)).toEqual(["step-00000005"]);
});

it("a commit whose answer is lost is a commit", async () => {
  const fileSystem = memoryFileSystem();
  const lossy = {
    ...fileSystem,
    unfinished: {
      ...fileSystem.unfinished!,
      async createOnce(path: string, data: Uint8Array | string) {
        const isFirst = await fileSystem.unfinished!.createOnce(path, data);
        if (path.endsWith("manifest.json")) throw Object.assign(new Error("no answer"), { code: "EIO" });
        return isFirst;
      },
    },
  };
  await saveCheckpoint("run", contents(1), { fileSystem: lossy });
  await expectWhole(fileSystem, 1);
});

it("clean removes the files of a save that died, and not those of the step or of saves at work", async () => {
  const fileSystem = memoryFileSystem();
  await saveCheckpoint("run", contents(1), { fileSystem });
  const put = (name: string) => fileSystem.unfinished!.createOnce(`run/${name}`, "x");
  const alive = newAttempt();
  await put("step-00000001.tmp-nobody.000000000000.1.1.0-aaaaaaaaaaaa");
  await put("step-00000001/rank-00000-aaaaaaaaaaaa.safetensors");
  await put(`step-00000001.tmp-${alive}`);
  await put(`step-00000001/rank-00000-${alive.slice(-12)}.safetensors`);
  await put("step-00000001/notes.txt");
  expect((await cleanCheckpoints("run", { fileSystem })).removed).toEqual([]);
  const { removed, kept } = await cleanCheckpoints("run", { fileSystem, force: true });
  expect([removed.length, kept.length]).toEqual([1, 1]);
  expect(await names(fileSystem, "run/step-00000001")).toHaveLength(4);
  await expectWhole(fileSystem, 1);
});

it("ends an upload whose beginning the store has answered too late", async () => {
  const ended: string[] = [];
  const absent = async () => undefined;
  const fileSystem = objectFileSystem({
    stat: absent,
    read: absent,
    writer: {
      partBytes: () => 4,
      put: absent,
      putOnce: async () => true,
      begin: () => Promise.reject(fail("EIO", "no answer")),
      remove: absent,
      abort: async (key) => void ended.push(key),
    },
  });
  const file = await fileSystem.open("run/shard", "create");
  await expect(file.write(new Uint8Array(8), 0)).rejects.toThrow("no answer");
  await fileSystem.unfinished!.discard("run/shard");
  expect(ended).toEqual(["run/shard"]);
});
