/**
 * The life of a step's folder: written under a temporary name, made durable, renamed, and only then may older ones go.
 * Whatever dies on the way leaves the older steps as they were and a folder that the next save sweeps away.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { OptError } from "@opt/core";
import { encodeManifest, MANIFEST_FILE, type Manifest } from "../format/manifest";
import { listSteps, stepName } from "../format/steps";
import { diskError, type FileSystem } from "../stores/file-system";

/** A folder of an unknown owner is stale when nothing in it has changed for this long. */
const STALE_AFTER = 3_600_000;

/** One attempt at a save: who makes it can be told from its name. */
export function newAttempt(): string {
  return `${hostname().replace(/[^A-Za-z0-9-]/g, "-")}.${process.pid}.${randomBytes(6).toString("hex")}`;
}

export interface CommitOptions {
  readonly overwrite: boolean;
  /** How many of the newest steps stay; all without it. */
  readonly keep?: number;
}

export class StepFolder {
  /** Where the files of the step are written. */
  readonly path: string;
  readonly #final: string;
  readonly #attempt: string;
  readonly #fileSystem: FileSystem;

  private constructor(fileSystem: FileSystem, folder: string, step: number, attempt: string) {
    if (!/^[A-Za-z0-9._-]+$/.test(attempt)) {
      throw new OptError(
        "BAD_ARGUMENT",
        "saveCheckpoint",
        `attempt must be letters, digits, . _ or -, got ${attempt}.`,
        "Rename.",
      );
    }
    this.#fileSystem = fileSystem;
    this.#final = join(folder, stepName(step));
    this.#attempt = attempt;
    this.path = `${this.#final}.tmp-${attempt}`;
  }

  /** Creates the temporary folder, or joins it. Throws DUPLICATE where the step exists already, IO, MISSING. */
  static async begin(
    fileSystem: FileSystem,
    folder: string,
    step: number,
    attempt: string,
    options: { overwrite: boolean },
  ): Promise<StepFolder> {
    const pending = new StepFolder(fileSystem, resolve(folder), step, attempt);
    await pending.#disk("creating", async () => {
      if (!options.overwrite) await pending.#refuseExisting();
      const isNew = (await fileSystem.kind(resolve(folder))) === undefined;
      await fileSystem.makeFolder(pending.path);
      // What died here before must not fill the disk; whether sweeping works is no matter of this save.
      if (!isNew) await pending.#sweep().catch(() => {});
      if (isNew) await fileSystem.syncFolder(dirname(resolve(folder)));
    });
    return pending;
  }

  /** The folder of an attempt that another rank began. */
  static join(fileSystem: FileSystem, folder: string, step: number, attempt: string): StepFolder {
    return new StepFolder(fileSystem, resolve(folder), step, attempt);
  }

  get finalPath(): string {
    return this.#final;
  }

  async #refuseExisting(): Promise<void> {
    if ((await this.#fileSystem.kind(join(this.#final, MANIFEST_FILE))) === undefined) return;
    throw new OptError(
      "DUPLICATE",
      this.#final,
      "the step exists already.",
      "Save another step, or with overwrite: true.",
    );
  }

  /** Makes the step exist. Returns what could not be tidied up afterwards, which does not harm the step. */
  async commit(manifest: Manifest, options: CommitOptions): Promise<string[]> {
    await this.#disk("committing", async () => {
      const fs = this.#fileSystem;
      const file = await fs.open(join(this.path, MANIFEST_FILE), "create");
      try {
        await file.write(encodeManifest(manifest), 0);
        await file.sync();
      } finally {
        await file.close();
      }
      await fs.syncFolder(this.path);
      if (!options.overwrite) await this.#refuseExisting();
      // A set-aside step counts as the step until the new one has its name, so there is no instant without one.
      if ((await fs.kind(this.#final)) !== undefined)
        await fs.rename(this.#final, `${this.#final}.old-${this.#attempt}`);
      await fs.rename(this.path, this.#final);
      await fs.syncFolder(dirname(this.#final));
    });
    return this.#tidy(options);
  }

  /** Removes what this attempt has written so far. */
  async abandon(): Promise<void> {
    await this.#fileSystem.remove(this.path).catch(() => {}); // the next save sweeps it
  }

  async #tidy({ keep }: CommitOptions): Promise<string[]> {
    const fs = this.#fileSystem;
    const folder = dirname(this.#final);
    const warnings: string[] = [];
    const attempt = async (what: string, body: () => Promise<void>) => {
      await body().catch((error: unknown) => warnings.push(diskError(error, what, "tidying").message));
    };
    await attempt(folder, async () => {
      if (keep !== undefined) {
        const older = (await listSteps(fs, folder)).filter(({ path }) => path !== this.#final);
        for (const { path } of older.slice(0, Math.max(0, older.length + 1 - keep))) {
          await attempt(path, async () => {
            // Renamed first: half a step must never look like one.
            const doomed = `${path}.tmp-${this.#attempt}`;
            await fs.rename(path, doomed);
            await fs.remove(doomed);
          });
        }
      }
      await this.#sweep();
    });
    return warnings;
  }

  /** Removes what dead saves have left. */
  async #sweep(): Promise<void> {
    const folder = dirname(this.#final);
    for (const { name } of await this.#fileSystem.list(folder)) {
      const path = join(folder, name);
      if (path !== this.path && (await isStale(this.#fileSystem, path))) await this.#fileSystem.remove(path);
    }
  }

  async #disk<T>(doing: string, body: () => Promise<T>): Promise<T> {
    try {
      return await body();
    } catch (error) {
      throw diskError(error, this.#final, doing);
    }
  }
}

async function isStale(fileSystem: FileSystem, path: string): Promise<boolean> {
  const match = /^(step-\d+)\.(tmp|old)-(.+)$/.exec(basename(path));
  if (!match) return false;
  const [, step, kind, attempt] = match;
  if (kind === "old") return (await fileSystem.kind(join(dirname(path), step!, MANIFEST_FILE))) === "file";
  const owner = /^(.+)\.(\d+)\.[0-9a-f]+(-.*)?$/.exec(attempt!);
  const changed = await fileSystem.modified(path);
  if (owner && owner[1] === hostname().replace(/[^A-Za-z0-9-]/g, "-")) {
    const pid = Number(owner[2]);
    // A process id of before this process's start is an earlier process's, even where it is our own number.
    return pid === process.pid ? changed < Date.now() - process.uptime() * 1000 : !isAlive(pid);
  }
  return changed < Date.now() - STALE_AFTER;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
