/** Two saves of one step at the same moment, and stores whose answers get lost: one whole step is there, and each save knows whether it is its own. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { MemoryFileSystem } from "../../../testing/disks/memory-file-system";
import { expectCode } from "../../../testing/expect-code";
import { MANIFEST_FILE, type Manifest, parseManifest } from "../../format/manifest";
import type { FileSystem } from "../../stores/file-system";
import { memoryFileSystem } from "../../stores/memory";
import { endAttempt, newAttempt } from "./owner";
import { StepFolder } from "./step-folder";

const A = "/runs/a/step-00000001";
const manifest = (attempt: string): Manifest => ({
  ...{ step: 1, attempt, world: 1, files: [], tensors: [], values: {} },
  mesh: { shape: [1], axes: ["rank"] },
});
const begin = (disk: FileSystem, overwrite: boolean) =>
  StepFolder.begin(disk, "/runs/a", 1, newAttempt(), { overwrite });
const commit = (folder: StepFolder) => folder.commit(manifest(folder.attempt));

async function saved(disk: FileSystem): Promise<StepFolder> {
  const folder = await begin(disk, true);
  await commit(folder);
  return folder;
}

async function attemptOf(disk: FileSystem): Promise<string | undefined> {
  const file = await disk.open(`${disk.resolve(A)}/${MANIFEST_FILE}`, "read");
  const bytes = new Uint8Array(await file.size());
  await file.read(bytes, 0);
  return parseManifest(bytes, "manifest").attempt;
}

/** A disk that does something before each renaming that it is told to. */
class Racing extends MemoryFileSystem {
  /** Before a step gets its name. */
  beforeName = async (): Promise<unknown> => undefined;
  /** Before a file gets into a step. */
  beforeMove = async (_name: string): Promise<unknown> => undefined;
  names = 0;
  #isOther = false;

  override async rename(from: string, to: string) {
    if (!this.#isOther) {
      this.#isOther = true;
      if (to === A) this.names++;
      if (to === A) await this.beforeName();
      if (to.startsWith(`${A}/`)) await this.beforeMove(to.slice(A.length + 1));
      this.#isOther = false;
    }
    await super.rename(from, to);
  }
}

/** A save that replaces the step, with one shard. */
async function replacing(disk: FileSystem): Promise<{ folder: StepFolder; shard: string; end(): Promise<string[]> }> {
  const folder = await begin(disk, true);
  const shard = `rank-00000-${folder.fileTag}.safetensors`;
  await disk.open(`${folder.path}/${shard}`, "create");
  const files = [{ name: shard, byteLength: 64, headerLength: 64, headerCrc32: 0, crc32: 0 }];
  return { folder, shard, end: () => folder.commit({ ...manifest(folder.attempt), files }) };
}

const namesIn = async (disk: FileSystem, folder: string) => (await disk.list(folder)).map(({ name }) => name).sort();

describe("two saves that replace a step", () => {
  it.each(["before", "while"])(
    "the slower finds the quicker's, which came %s it gave its own, and its own is there",
    async (when) => {
      const disk = new Racing();
      if (when === "while") await saved(disk);
      const slower = await replacing(disk);
      const quick = vi.fn(async () => (await replacing(disk)).end());
      disk.beforeName = quick;
      disk.beforeMove = (name) => (name === "manifest.json" && when === "while" ? quick() : Promise.resolve());
      expect(await slower.end()).toEqual([]);
      expect([quick.mock.calls.length, await attemptOf(disk)]).toEqual([1, slower.folder.attempt]);
      expect([await namesIn(disk, "/runs/a"), await namesIn(disk, A)]).toEqual([
        ["step-00000001"],
        ["manifest.json", slower.shard],
      ]);
    },
  );

  it("the quicker leaves the slower's files alone, which are there already", async () => {
    const disk = new Racing();
    await saved(disk);
    const [slower, quicker] = [await replacing(disk), await replacing(disk)];
    await disk.rename(`${slower.folder.path}/${slower.shard}`, `${A}/${slower.shard}`);
    expect(await quicker.end()).toEqual([]);
    expect(await namesIn(disk, A)).toEqual(["manifest.json", quicker.shard, slower.shard].sort());
  });

  it("a step that is removed before anything is in it gets its name again", async () => {
    const disk = new Racing();
    await saved(disk);
    const slower = await replacing(disk);
    disk.beforeMove = () => disk.remove(A);
    expect(await slower.end()).toEqual([]);
    expect([disk.names, await attemptOf(disk)]).toEqual([2, slower.folder.attempt]);
  });

  it("a step that another job's retention removes once it is whole has been saved", async () => {
    const disk = new Racing();
    await saved(disk);
    const slower = await replacing(disk);
    const sync = disk.syncFolder.bind(disk);
    let removed = false;
    disk.syncFolder = async (path) => {
      if (path === A && !removed && (await attemptOf(disk)) === slower.folder.attempt) {
        removed = true;
        await disk.rename(A, `${A}.tmp-vm.0.0.0-0`);
        throw Object.assign(new Error("ENOENT"), { code: "ENOENT" });
      }
      await sync(path);
    };
    expect(await slower.end()).toEqual([]);
    expect(removed).toBe(true);
  });

  it("one whose step comes and goes twenty times says so, and nothing of it is left", async () => {
    const disk = new Racing();
    const slower = await replacing(disk);
    disk.beforeName = () => saved(disk);
    disk.beforeMove = () => disk.remove(A);
    expect(await expectCode("IO", slower.end())).toMatch(/committing/);
    await slower.folder.abandon();
    expect([disk.names, await namesIn(disk, "/runs/a")]).toEqual([20, ["step-00000001"]]);
  });

  it.each<[string, (disk: Racing, folder: StepFolder) => void]>([
    [
      "its files cannot be moved",
      (disk) => {
        disk.beforeMove = () => Promise.reject(Object.assign(new Error("rejected"), { code: "EACCES" }));
      },
    ],
    [
      "its own folder has been swept",
      (disk, folder) => {
        disk.beforeMove = () => disk.remove(folder.path);
      },
    ],
    [
      "the step is removed with some of its files",
      (disk) => {
        disk.beforeMove = async (name) => name === "manifest.json" && disk.remove(A);
      },
    ],
  ])("fails where %s", async (_, fault) => {
    const disk = new Racing();
    await saved(disk);
    const slower = await replacing(disk);
    fault(disk, slower.folder);
    await expect(slower.end()).rejects.toMatchObject({ where: A });
    disk.beforeMove = async () => undefined;
    await slower.folder.abandon();
    expect(await attemptOf(disk).catch(() => "gone")).not.toBe(slower.folder.attempt);
    expect((await namesIn(disk, "/runs/a")).filter((name) => name.includes(".tmp-"))).toEqual([]);
  });
});

it("of two that do not replace, the slower finds the step taken", async () => {
  const disk = new Racing();
  const slower = await begin(disk, false);
  disk.beforeName = () => saved(disk);
  await expectCode("DUPLICATE", commit(slower));
  await expectCode("DUPLICATE", begin(disk, false));
  await slower.abandon();
  expect((await disk.list("/runs/a")).map(({ name }) => name)).toEqual(["step-00000001"]);
});

it("what cannot be swept is no matter of a save", async () => {
  const disk = new MemoryFileSystem();
  await saved(disk);
  const list = vi.spyOn(disk, "list").mockRejectedValueOnce(Object.assign(new Error("rejected"), { code: "EIO" }));
  await (await begin(disk, true)).abandon();
  expect(list).toHaveBeenCalled();
});

describe("a store that renames nothing", () => {
  const store = () => {
    const disk = memoryFileSystem();
    const createOnce = vi.fn(disk.unfinished!.createOnce);
    return {
      ...disk,
      createOnce,
      unfinished: { ...disk.unfinished!, createOnce },
      isManifest: (path: string) => path.endsWith(MANIFEST_FILE),
    };
  };
  const lost = () => Object.assign(new Error("no answer"), { code: "EIO" });
  const exists = async (disk: FileSystem, path: string) => (await disk.kind(disk.resolve(path))) !== undefined;

  it("shows a sign from its beginning to its end, and names files by their save", async () => {
    const disk = store();
    const folder = await begin(disk, false);
    expect([folder.path, folder.fileTag]).toEqual([folder.finalPath, folder.attempt.slice(-12)]);
    expect(await exists(disk, `${A}.tmp-${folder.attempt}`)).toBe(true);
    await commit(folder);
    expect(await exists(disk, `${A}.tmp-${folder.attempt}`)).toBe(false);
    const other = await begin(disk, true);
    await other.abandon();
    expect(await exists(disk, `${A}.tmp-${other.attempt}`)).toBe(false);
  });

  it("a step of another is rejected, and stays", async () => {
    const disk = store();
    const slower = await begin(disk, false);
    const quicker = await saved(disk);
    await expectCode("DUPLICATE", commit(slower));
    await slower.abandon();
    expect([await attemptOf(disk), await exists(disk, `${A}.tmp-${slower.attempt}`)]).toEqual([quicker.attempt, false]);
  });

  it("a step of another that goes before it is looked at leaves its place", async () => {
    const disk = store();
    const folder = await begin(disk, false);
    await saved(disk);
    const { kind } = disk;
    disk.kind = async (path) => {
      if (disk.isManifest(path)) await disk.remove(path);
      return kind(path);
    };
    await commit(folder);
    expect(await attemptOf(disk)).toBe(folder.attempt);
  });

  it.each(["false", "an error"])("its own manifest counts, although the store answers %s", async (answer) => {
    const disk = store();
    const folder = await begin(disk, false);
    disk.createOnce.mockImplementation(async (path, data) => {
      const file = await disk.open(path, "create");
      await file.write(data as Uint8Array, 0);
      await file.finish();
      if (answer === "false") return false;
      throw lost();
    });
    expect(await commit(folder)).toEqual([]);
    expect(await attemptOf(disk)).toBe(folder.attempt);
  });

  it("replacing, an answer may get lost too", async () => {
    const disk = store();
    await saved(disk);
    const folder = await begin(disk, true);
    const { open } = disk;
    disk.open = async (path, mode, byteLength) => {
      const file = await open(path, mode, byteLength);
      const finish = async () => {
        await file.finish();
        throw lost();
      };
      return disk.isManifest(path) && mode === "create" ? { ...file, finish } : file;
    };
    expect(await commit(folder)).toEqual([]);
    expect(await attemptOf(disk)).toBe(folder.attempt);
  });

  it("where nobody knows whether the manifest came, its files stay for the next save to judge", async () => {
    const disk = store();
    const folder = await begin(disk, false);
    disk.createOnce.mockRejectedValue(lost());
    await expectCode("IO", commit(folder));
    await folder.abandon();
    expect(await exists(disk, `${A}.tmp-${folder.attempt}`)).toBe(true);
  });

  afterEach(() => void vi.useRealTimers());

  it("the sign is shown again every five minutes, until the save ends", async () => {
    vi.useFakeTimers();
    const disk = store();
    const writes = vi.spyOn(disk, "open");
    const folder = await begin(disk, false);
    const signs = () => writes.mock.calls.filter(([path, mode]) => path.includes(".tmp-") && mode === "create").length;
    await vi.advanceTimersByTimeAsync(299_000);
    expect(signs()).toBe(0);
    await vi.advanceTimersByTimeAsync(602_000);
    expect(signs()).toBe(3);
    await folder.abandon();
    await vi.advanceTimersByTimeAsync(900_000);
    expect(signs()).toBe(3);
  });

  it("sweeps what the dead have left when it begins and when it ends", async () => {
    const disk = store();
    const dead = newAttempt();
    const sign = async () => void (await disk.createOnce(disk.resolve(`${A}.tmp-${dead}`), dead));
    await sign();
    endAttempt(dead);
    const folder = await begin(disk, false);
    expect(await exists(disk, `${A}.tmp-${dead}`)).toBe(false);
    await sign();
    await commit(folder);
    expect(await exists(disk, `${A}.tmp-${dead}`)).toBe(false);
  });
});
