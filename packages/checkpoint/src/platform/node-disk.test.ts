/** What each writer calls on the machine's own disk: at each point the process may die or the power be lost, and a reader finds the old or the new, whole. */
import { cpSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { afterCrash, afterEachCrash, RecordedNode } from "../../testing/disks/recorded-node";
import { sampleTensors, scratchFolder } from "../../testing/fixtures";
import { readWhole } from "../format/source";
import { listSteps } from "../format/steps";
import { convertCheckpoint, loadCheckpoint, mergeCheckpoint, reshardCheckpoint } from "../operations";
import { type SaveOptions, saveCheckpoint } from "../save/save";
import type { FileSystem } from "../stores/file-system";
import { nodeFileSystem } from "./node-file-system";

const scratch = scratchFolder();

const save = (folder: string, step: number, options: SaveOptions = {}, seed = step) =>
  saveCheckpoint(
    join(folder, "run"),
    { step, tensors: sampleTensors(seed), values: { seed } },
    { world: 2, ...options },
  );

/** The seed of the newest step. Each step must be whole. */
async function newest(fileSystem: FileSystem, folder: string): Promise<unknown> {
  const run = join(folder, "run");
  let seed: unknown;
  for (const { step } of await listSteps(fileSystem, run).catch(() => [])) {
    const { tensors, values } = await loadCheckpoint(run, { step, fileSystem, as: "plain" });
    seed = values.seed;
    for (const [name, { data }] of Object.entries(sampleTensors(seed as number)))
      expect(tensors[name]!.data, name).toEqual(data);
  }
  return seed;
}

/** Names and contents of a file or of all in a folder, as text; undefined where nothing is. */
async function contents(fileSystem: FileSystem, path: string): Promise<string | undefined> {
  const kind = await fileSystem.kind(path);
  if (kind === "file") return Buffer.from(await readWhole(fileSystem, path, 1 << 24)).toString("base64");
  if (kind === undefined) return undefined;
  const names = (await fileSystem.list(path)).map(({ name }) => name).sort();
  const all = names.map(async (name) => `${name} ${await contents(fileSystem, join(path, name))}\n`);
  return (await Promise.all(all)).join("");
}

/** What is called "out", or where a writer of folders has died what it set aside, which the next one puts back. */
async function out(fileSystem: FileSystem, folder: string): Promise<string | undefined> {
  const found = await contents(fileSystem, join(folder, "out"));
  if (found !== undefined) return found;
  const aside = (await fileSystem.list(folder)).find(({ name }) => name.startsWith("out.old-"));
  return aside && contents(fileSystem, join(folder, aside.name));
}

interface Writer {
  readonly before?: (folder: string) => Promise<unknown>;
  readonly write: (folder: string) => Promise<unknown>;
  /** What a reader finds; throws where that is not whole. */
  readonly find: (fileSystem: FileSystem, folder: string) => Promise<unknown>;
}

const converting = (options: Parameters<typeof convertCheckpoint>[2], hasOld: boolean): Writer => ({
  before: async (folder) => {
    for (const step of [1, 2]) await save(folder, step);
    if (hasOld) await convertCheckpoint(join(folder, "run"), join(folder, "out"), { ...options, step: 1 });
  },
  write: (folder) => convertCheckpoint(join(folder, "run"), join(folder, "out"), { ...options, overwrite: hasOld }),
  find: out,
});

const WRITERS: Record<string, Writer> = {
  "the first save": { write: (folder) => save(folder, 1), find: newest },
  "a save that keeps one step": {
    before: async (folder) => [await save(folder, 1), await save(folder, 2)],
    write: (folder) => save(folder, 3, { keep: 1 }),
    find: newest,
  },
  "a save that replaces a step": {
    before: (folder) => save(folder, 1),
    write: (folder) => save(folder, 1, { overwrite: true }, 5),
    find: newest,
  },
  "a save in another thread": {
    before: (folder) => save(folder, 1),
    write: (folder) => save(folder, 2, { async: true }),
    find: newest,
  },
  "a merge": {
    before: (folder) => save(folder, 1),
    write: (folder) => mergeCheckpoint(join(folder, "run"), join(folder, "out")),
    find: out,
  },
  "a merge that replaces a file": {
    before: async (folder) => {
      for (const step of [1, 2]) await save(folder, step);
      await mergeCheckpoint(join(folder, "run"), join(folder, "out"), { step: 1 });
    },
    write: (folder) => mergeCheckpoint(join(folder, "run"), join(folder, "out"), { overwrite: true }),
    find: out,
  },
  "a reshard that replaces a step": {
    before: async (folder) => {
      await save(folder, 1);
      await reshardCheckpoint(join(folder, "run"), join(folder, "out"), { ranks: 2 });
      await save(folder, 1, { overwrite: true }, 5);
    },
    write: (folder) => reshardCheckpoint(join(folder, "run"), join(folder, "out"), { ranks: 3, overwrite: true }),
    find: async (fileSystem, folder) =>
      (await loadCheckpoint(join(folder, "out"), { fileSystem, as: "plain" })).values.seed,
  },
  "a file for torch.load": converting({ to: "pt" }, false),
  "a file for torch.load that replaces another": converting({ to: "pt" }, true),
  "a folder for torch.distributed": converting({ to: "dcp" }, false),
  "a folder for torch.distributed that replaces another": converting({ to: "dcp" }, true),
  "files for Hugging Face that replace others": converting({ to: "safetensors", maxShardSize: 200 }, true),
  "a MindSpore file that replaces another": converting({ to: "ckpt" }, true),
};

/** So many calls of each writer fail, spread over all. */
const FAILURES = triesAll ? Infinity : 6;

// The disk that loses power has names with slashes.
describe.skipIf(process.platform === "win32").each(Object.entries(WRITERS))("%s", (_, writer) => {
  /** The disk before the writer, and its runs on copies of it; the disk may reject call `failAt`. */
  async function prepared() {
    const before = join(scratch.path, "before");
    mkdirSync(before);
    await writer.before?.(before);
    const run = async (failAt = Infinity) => {
      const folder = join(scratch.path, `${failAt}`);
      cpSync(before, folder, { recursive: true });
      const node = new RecordedNode(folder, failAt);
      const outcome = await node.during(() => writer.write(folder)).catch((error: unknown) => error);
      return { node, outcome, find: (fileSystem: FileSystem) => writer.find(fileSystem, folder) };
    };
    return { old: await writer.find(nodeFileSystem, before), run };
  }

  it("leaves the old or the new, whole, wherever power is lost", async () => {
    const { old, run } = await prepared();
    const { node, find } = await run();
    const now = await find(nodeFileSystem);
    expect(now).not.toEqual(old);
    await afterEachCrash(node, async (fileSystem) => expect([old, now]).toContainEqual(await find(fileSystem)));
    await afterCrash(node, async (fileSystem) => expect(await find(fileSystem)).toEqual(now));
  });

  it("leaves the old or the new, and nothing else, where the disk rejects a call", async () => {
    const { old, run } = await prepared();
    const whole = await run();
    const now = await whole.find(nodeFileSystem);
    const stride = Math.max(1, Math.floor(whole.node.calls / FAILURES));
    for (let at = whole.node.calls - 1; at >= 0; at -= stride) {
      const { node, outcome, find } = await run(at);
      const found = await find(nodeFileSystem);
      if (!(outcome instanceof Error)) {
        // Only tidying up failed: the new is there, and durable.
        await afterCrash(node, async (fileSystem) => expect(await find(fileSystem)).toEqual(now));
        continue;
      }
      expect(outcome).toMatchObject({ code: "IO", message: expect.stringMatching(/injected at/) });
      // The last sync may fail: then the new one has its name already, and the old stays aside.
      expect([old, now]).toContainEqual(found);
      const left = (readdirSync(node.folder, { recursive: true }) as string[]).filter((name) =>
        /\.tmp-|\.old-/.test(name),
      );
      expect(left.filter((name) => name.includes(".tmp-") || found === old)).toEqual([]);
    }
  });
});
