// Saves into a store that renames nothing: the manifest, put last, is the commit.
import { expect, it } from "vitest";
import { sampleTensors } from "../../testing/fixtures";
import { loadCheckpoint } from "../operations";
import { memoryFileSystem } from "../stores/memory";
import { fail, objectFileSystem } from "../stores/objects";
import { saveCheckpoint } from "./save";
import { cleanCheckpoints } from "./step/clean";
import { newAttempt } from "./step/owner";

const contents = (step: number) => ({ step, tensors: sampleTensors(step), values: { epoch: step } });
const names = async (fileSystem: ReturnType<typeof memoryFileSystem>, folder = "run") =>
  (await fileSystem.list(folder)).map(({ name }) => name).sort();

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
  expect((await loadCheckpoint("run", { fileSystem })).values).toEqual({ epoch: 1 });
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
