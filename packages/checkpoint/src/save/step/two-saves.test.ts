/** Two saves of one step at the same moment, and stores whose answers get lost: one whole step is there, and each save knows whether it is its own. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { MANIFEST_FILE, type Manifest, parseManifest } from "../../format/manifest";
import type { FileSystem } from "../../stores/file-system";
import { memoryFileSystem } from "../../stores/memory";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { expectCode } from "../../testing/expect-code";
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
  /** Before a step is set aside. */
  beforeAside = async (): Promise<unknown> => undefined;
  /** Before a step gets its name. */
  beforeName = async (): Promise<unknown> => undefined;
  readonly asides: string[] = [];
  names = 0;
  #isOther = false;

  override async rename(from: string, to: string) {
    if (!this.#isOther) {
      this.#isOther = true;
      if (from === A) await this.beforeAside();
      if (to === A) await this.beforeName();
      this.#isOther = false;
      if (from === A) this.asides.push(to);
      if (to === A) this.names++;
    }
    await super.rename(from, to);
  }
}

describe("two saves that replace a step", () => {
  it("the slower sets the quicker's aside as well, and its own is there", async () => {
    const disk = new Racing();
    await saved(disk);
    const slower = await begin(disk, true);
    const quick = vi.fn(() => saved(disk));
    disk.beforeName = () => (quick.mock.calls.length < 2 ? quick() : Promise.resolve());
    expect(await commit(slower)).toEqual([]);
    expect(disk.asides).toEqual([0, 1, 2].map((tries) => `${A}.old-${slower.attempt}.${tries}`));
    expect([quick.mock.calls.length, await attemptOf(disk)]).toEqual([2, slower.attempt]);
    expect((await disk.list("/runs/a")).map(({ name }) => name)).toEqual(["step-00000001"]);
  });

  it("of two steps that one sets aside, no reader sees both", async () => {
    const disk = new Racing();
    await saved(disk);
    const slower = await begin(disk, true);
    const asides: string[][] = [];
    disk.beforeName = async () => {
      const names = (await disk.list("/runs/a")).map(({ name }) => name);
      asides.push(names.filter((name) => name.includes(".old-")));
      if (asides.length > 1) return;
      // A quicker save that has not tidied up yet.
      await disk.makeFolder(A);
      await disk.open(`${A}/${MANIFEST_FILE}`, "create");
    };
    await commit(slower);
    expect(asides).toEqual([0, 1].map((tries) => [`step-00000001.old-${slower.attempt}.${tries}`]));
  });

  it("it does not matter who sets the old one aside", async () => {
    const disk = new Racing();
    await saved(disk);
    const slower = await begin(disk, true);
    disk.beforeAside = () => disk.rename(A, `${A}.old-other.0`);
    expect(await commit(slower)).toEqual([]);
    expect(await attemptOf(disk)).toBe(slower.attempt);
  });

  it("one that loses twenty-one times says so, and the other's is there", async () => {
    const disk = new Racing();
    const slower = await begin(disk, true);
    let last = "";
    disk.beforeName = async () => {
      last = (await saved(disk)).attempt;
    };
    expect(await expectCode("IO", commit(slower))).toMatch(/committing/);
    expect([disk.names, await attemptOf(disk)]).toEqual([21, last]);
  });

  it.each<[string, (disk: Racing, folder: StepFolder) => void]>([
    [
      "the old one cannot be set aside",
      (disk) => {
        disk.beforeAside = () => Promise.reject(Object.assign(new Error("rejected"), { code: "EACCES" }));
      },
    ],
    [
      "its own folder has been swept",
      (disk, folder) => {
        disk.beforeName = async () => {
          await saved(disk);
          await disk.remove(folder.path);
        };
      },
    ],
  ])("fails at once where %s", async (_, fault) => {
    const disk = new Racing();
    await saved(disk);
    const folder = await begin(disk, true);
    fault(disk, folder);
    disk.names = 0;
    await expect(commit(folder)).rejects.toMatchObject({ where: A });
    expect(disk.names).toBeLessThan(2);
    expect(await attemptOf(disk)).not.toBe(folder.attempt);
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
