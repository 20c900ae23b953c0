/** In which order a step's folder is made, filled, named and cleared: what a crash in between leaves follows from it. */
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../../testing/disks/memory-file-system";
import { expectCode } from "../../../testing/expect-code";
import type { Manifest } from "../../format/manifest";
import type { FileSystem, OpenMode } from "../../stores/file-system";
import { newAttempt } from "./owner";
import { StepFolder } from "./step-folder";

/** Writes down every change to the disk, and rejects those that a test names. */
class Noting extends MemoryFileSystem {
  notes: string[] = [];
  rejected = /^$/;

  #note(note: string): void {
    this.notes.push(note);
    if (this.rejected.test(note)) throw Object.assign(new Error("rejected"), { code: "EIO" });
  }
  override async open(path: string, mode: OpenMode) {
    if (mode !== "read") this.#note(`${mode} ${path}`);
    const file = await super.open(path, mode);
    const finish = async () => {
      this.#note(`finish ${path}`);
      await file.finish();
    };
    const close = async () => {
      if (mode !== "read") this.#note(`close ${path}`);
    };
    return { ...file, finish, close };
  }
  override async makeFolder(path: string) {
    this.#note(`make ${path}`);
    await super.makeFolder(path);
  }
  override async rename(from: string, to: string) {
    this.#note(`rename ${from} ${to}`);
    await super.rename(from, to);
  }
  override async remove(path: string) {
    this.#note(`remove ${path}`);
    await super.remove(path);
  }
  override async syncFolder(path: string) {
    this.#note(`sync ${path}`);
    await super.syncFolder(path);
  }
}

const manifest = (step: number, attempt: string): Manifest => ({
  ...{ step, attempt, world: 1, files: [], tensors: [], values: {} },
  mesh: { shape: [1], axes: ["rank"] },
});

const A = "/runs/a/step-00000001";

async function saved(
  disk: Noting,
  step: number,
  { overwrite = false, keep }: { overwrite?: boolean; keep?: number } = {},
) {
  const attempt = newAttempt();
  const retention = keep === undefined ? {} : { keep: { last: keep } };
  const folder = await StepFolder.begin(disk, "/runs/a", step, attempt, { overwrite, ...retention });
  const warnings = await folder.commit(manifest(step, attempt));
  return { attempt, folder, warnings };
}

async function notesOf(disk: Noting, body: () => Promise<{ attempt: string }>): Promise<string[]> {
  disk.notes = [];
  const { attempt } = await body();
  return disk.notes.map((note) => note.replaceAll(attempt, "ATTEMPT"));
}

describe("a step's folder", () => {
  it("the first of a run: the manifest is durable before the folder has its name, and the run's folder too", async () => {
    const disk = new Noting();
    expect(await notesOf(disk, () => saved(disk, 1))).toEqual([
      "sync /",
      "make /runs",
      "sync /",
      "make /runs/a",
      "sync /runs",
      `make ${A}.tmp-ATTEMPT`,
      ...["create", "finish", "close"].map((what) => `${what} ${A}.tmp-ATTEMPT/manifest.json`),
      `sync ${A}.tmp-ATTEMPT`,
      `rename ${A}.tmp-ATTEMPT ${A}`,
      "sync /runs/a",
    ]);
  });

  it("a later one sweeps what the dead have left, before it writes and after", async () => {
    const disk = new Noting();
    await saved(disk, 1);
    const dead = `/runs/a/step-00000009.tmp-${newAttempt().replace(/\d+(\.\d+\.\d+-)/, "4194303$1")}`;
    await disk.makeFolder(dead);
    const notes = await notesOf(disk, () => saved(disk, 2));
    expect(notes.slice(0, 2)).toEqual(["sync /runs/a", `remove ${dead}`]);
    // Who made the run's folder may have died before that was durable.
    expect(notes).toContain("sync /runs");
    expect(notes.filter((note) => note.startsWith("remove"))).toEqual([`remove ${dead}`]);
  });

  it("that replaces another moves its files in, the manifest last, and then removes what is no longer named", async () => {
    const disk = new Noting();
    const first = await saved(disk, 1, { overwrite: true });
    const old = `${A}/rank-00000-${first.folder.fileTag}.safetensors`;
    await disk.open(old, "create");
    const attempt = newAttempt();
    const folder = await StepFolder.begin(disk, "/runs/a", 1, attempt, { overwrite: true });
    const shard = `rank-00000-${folder.fileTag}.safetensors`;
    await disk.open(`${folder.path}/${shard}`, "create");
    const notes = await notesOf(disk, async () => {
      await folder.commit({
        ...manifest(1, attempt),
        files: [{ name: shard, byteLength: 64, headerLength: 64, headerCrc32: 0, crc32: 0 }],
      });
      return { attempt };
    });
    const move = (name: string) => `rename ${A}.tmp-ATTEMPT/${name} ${A}/${name}`;
    expect(notes.slice(notes.indexOf(`sync ${A}.tmp-ATTEMPT`) + 1)).toEqual([
      "sync /runs/a",
      move(shard.replace(attempt, "ATTEMPT")),
      `sync ${A}`,
      move("manifest.json"),
      ...[`sync ${A}`, "sync /runs/a", `sync ${A}`, `remove ${old}`, `sync ${A}`],
      `remove ${A}.tmp-ATTEMPT`,
    ]);
    expect((await disk.list(A)).map(({ name }) => name).sort()).toEqual(["manifest.json", shard]);
    expect((await saved(disk, 2)).folder.fileTag).toBeUndefined();
  });

  it("that is old goes after the new one is there, and never looks like half a step", async () => {
    const disk = new Noting();
    await saved(disk, 1);
    const notes = await notesOf(disk, () => saved(disk, 2, { keep: 1 }));
    const named = notes.findIndex((note) => note.endsWith(" /runs/a/step-00000002"));
    expect(notes.slice(named)).toEqual([
      expect.stringMatching(/^rename /),
      "sync /runs/a",
      "sync /runs/a",
      `rename ${A} ${A}.tmp-ATTEMPT`,
      "sync /runs/a",
      `remove ${A}.tmp-ATTEMPT`,
    ]);
    expect((await saved(disk, 1, { keep: 1 })).warnings).toEqual([]);
    expect(await disk.kind(A)).toBe("folder"); // saved last, although its number is lower
  });

  it("knows whether the step that is there is its own", async () => {
    const disk = new Noting();
    const first = await saved(disk, 1);
    expect(await first.folder.isCommitted()).toBe(true);
    const second = await saved(disk, 1, { overwrite: true });
    expect([await first.folder.isCommitted(), await second.folder.isCommitted()]).toEqual([false, true]);
    disk.replace(`${A}/manifest.json`, new TextEncoder().encode("{"));
    await expectCode("CORRUPT", second.folder.isCommitted());
    await disk.remove(`${A}/manifest.json`);
    expect(await second.folder.isCommitted()).toBe(false);
  });

  it("is durable once when no older one has to go", async () => {
    const [plain, keeping] = await Promise.all(
      [undefined, 5].map(async (keep) => {
        const disk = new Noting();
        await saved(disk, 1);
        return notesOf(disk, () => saved(disk, 2, { ...(keep && { keep }) }));
      }),
    );
    expect(keeping).toEqual(plain);
  });

  it("begins where a disk's root is not there, as that of a drive without a disk", async () => {
    const disk = new Noting();
    disk.kind = async () => undefined;
    const attempt = newAttempt();
    await StepFolder.begin(disk, "/runs/a", 1, attempt, { overwrite: true });
    expect(disk.notes.filter((note) => note.startsWith("make"))).toEqual([
      "make /runs",
      "make /runs/a",
      `make ${A}.tmp-${attempt}`,
    ]);
  });

  it("that loses a file while it replaces another is not tried again", async () => {
    const disk = new Noting();
    await saved(disk, 1, { overwrite: true });
    const attempt = newAttempt();
    const folder = await StepFolder.begin(disk, "/runs/a", 1, attempt, { overwrite: true });
    for (const name of ["a", "b"]) await disk.open(`${folder.path}/${name}`, "create");
    const { rename } = disk;
    disk.rename = async (from, to) => {
      if (to.endsWith("/b")) await disk.remove(from);
      await rename.call(disk, from, to);
    };
    await expectCode("MISSING", folder.commit(manifest(1, attempt)));
    expect(disk.notes.filter((note) => note.startsWith("rename")).map((note) => note.split("/").at(-1))).toEqual([
      ...[A.slice(8), "a", "b"],
    ]);
  });

  it("is there although nothing could be tidied up, which it says", async () => {
    const disk = new Noting();
    await saved(disk, 1);
    expect((await saved(disk, 2)).warnings).toEqual([]);
    disk.rejected = new RegExp(`^rename ${A} `);
    const { warnings, folder } = await saved(disk, 3, { keep: 1 });
    expect(warnings).toEqual([expect.stringMatching(/tidying failed: rejected/)]);
    expect(await folder.isCommitted()).toBe(true);
  });

  it("that cannot be written is closed, rejected by name and swept", async () => {
    const disk = new Noting();
    disk.rejected = /^finish/;
    const attempt = newAttempt();
    const folder = await StepFolder.begin(disk, "/runs/a", 1, attempt, { overwrite: false });
    const commit = folder.commit(manifest(1, attempt));
    await expect(commit).rejects.toMatchObject({ code: "IO", where: A, message: expect.stringMatching(/committing/) });
    expect(disk.notes.at(-1)).toBe(`close ${A}.tmp-${attempt}/manifest.json`);
    await folder.abandon();
    expect(await disk.kind(`${A}.tmp-${attempt}`)).toBeUndefined();
    disk.rejected = /^make/;
    const again = StepFolder.begin(disk, "/runs/a", 1, newAttempt(), { overwrite: false });
    await expect(again).rejects.toMatchObject({ code: "IO", message: expect.stringMatching(/creating/) });
  });

  it("needs the folder that the run is in to be durable, unless that is somebody else's", async () => {
    const begin = (disk: FileSystem) => StepFolder.begin(disk, "/runs/a", 1, newAttempt(), { overwrite: false });
    for (const [code, outcome] of [
      ["EIO", "rejected"],
      ["EACCES", "fulfilled"],
    ] as const) {
      const disk = new Noting();
      const { syncFolder } = disk;
      disk.syncFolder = (path) =>
        path === "/" && disk.notes.length === 0
          ? Promise.reject(Object.assign(new Error("rejected"), { code }))
          : syncFolder.call(disk, path);
      const [{ status }] = await Promise.allSettled([begin(disk)]);
      expect(status).toBe(outcome);
    }
  });
});
