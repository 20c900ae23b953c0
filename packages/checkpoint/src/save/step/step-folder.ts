/** The life of a step's folder: written under a temporary name, made durable, put in its place; only then may older steps go. */

import { check, type OptError } from "@opt/core";
import { encodeManifest, MANIFEST_FILE, type Manifest, manifestLimits, readManifest } from "../../format/manifest";
import { checksumsName } from "../../format/shard";
import { stepName } from "../../format/steps";
import { diskError, type FileSystem, isMissing, writeBytes } from "../../stores/file-system";
import { dirname, join } from "../../stores/path";
import { type Attempt, endAttempt, fileTagOf } from "./owner";
import type { Retention } from "./retention";

/** Well below the time after which a save that shows no sign is taken for dead. */
const SIGN_EVERY = 300_000;

/** How often other saves may make and remove the step while this one takes its place. */
const TRIES = 20;

export interface StepOptions {
  readonly overwrite: boolean;
  readonly keep?: Retention | undefined;
}

export class StepFolder {
  readonly path: string;
  readonly finalPath: string;
  readonly attempt: Attempt;
  /** What the names of the files end with, where the step may replace another. */
  readonly fileTag: string | undefined;
  readonly #run: string;
  readonly #manifest: string;
  /** On stores without renames, an object that tells that this save is at work. */
  readonly #sign: string;
  readonly #fileSystem: FileSystem;
  readonly #options: StepOptions;
  /** Folders that were made for it, the outermost first. */
  #made: readonly string[] = [];
  #endPulse: (() => Promise<void>) | undefined;
  /** The manifest may be on its way still, although the store did not say so. */
  #isUncertain = false;

  /** The folder of an attempt that rank 0 began; `begin` begins one. */
  constructor(fileSystem: FileSystem, folder: string, step: number, attempt: Attempt, options: StepOptions) {
    this.#fileSystem = fileSystem;
    this.#options = options;
    this.#run = fileSystem.resolve(folder);
    this.finalPath = join(this.#run, stepName(step));
    this.#manifest = join(this.finalPath, MANIFEST_FILE);
    this.attempt = attempt;
    this.fileTag = options.overwrite || fileSystem.unfinished ? fileTagOf(attempt) : undefined;
    this.#sign = `${this.finalPath}.tmp-${attempt}`;
    this.path = fileSystem.unfinished ? this.finalPath : this.#sign;
  }

  /** Creates the temporary folder. @throws OptError DUPLICATE if the step exists already, IO, MISSING */
  static async begin(
    fileSystem: FileSystem,
    folder: string,
    step: number,
    attempt: Attempt,
    options: StepOptions,
  ): Promise<StepFolder> {
    const begun = new StepFolder(fileSystem, folder, step, attempt, options);
    try {
      await begun.#create();
    } catch (error) {
      await begun.abandon();
      throw diskError(error, begun.finalPath, "creating");
    }
    return begun;
  }

  async #create(): Promise<void> {
    const fs = this.#fileSystem;
    // What died here before must not fill the disk; whether sweeping works is no matter of this save.
    await this.#sweep().catch(() => {});
    if (!this.#options.overwrite) await this.#rejectExisting();
    if (fs.unfinished) return this.#showSign();
    this.#made = await makeDurable(fs, this.#run);
    await fs.makeFolder(this.path);
  }

  /** Shown again now and then, so that those who cannot see this process know that it is at work. */
  async #showSign(): Promise<void> {
    const text = new TextEncoder().encode(this.attempt);
    await this.#fileSystem.unfinished!.createOnce(this.#sign, text);
    this.#endPulse = pulse(() => writeBytes(this.#fileSystem, this.#sign, text), SIGN_EVERY);
  }

  async #exists(): Promise<boolean> {
    return (await this.#fileSystem.kind(this.#manifest)) !== undefined;
  }

  async #rejectExisting(): Promise<void> {
    const isFree = !(await this.#exists());
    check(
      isFree,
      "DUPLICATE",
      this.finalPath,
      () => "the step exists already.",
      "Save another step, or with overwrite: true.",
    );
  }

  async isCommitted(): Promise<boolean> {
    try {
      return (await readManifest(this.#fileSystem, this.finalPath)).attempt === this.attempt;
    } catch (error) {
      // Another save has replaced it while it was read, or removed it.
      const { code, cause } = error as OptError;
      if ((cause as NodeJS.ErrnoException | undefined)?.code === "ESTALE") return this.isCommitted();
      if (code === "MISSING") return false;
      throw error;
    }
  }

  /** For ranks that were not told: whether the step exists and is durable. */
  async confirm(): Promise<boolean> {
    try {
      const isCommitted = await this.isCommitted();
      for (const folder of [this.finalPath, this.#run]) await this.#fileSystem.syncFolder(folder);
      return isCommitted;
    } catch {
      return false;
    }
  }

  /** Makes the step exist. Returns what could not be tidied up afterwards, which does not harm the step. */
  async commit(manifest: Manifest): Promise<string[]> {
    const fs = this.#fileSystem;
    const { index } = manifest;
    const isListed = !index || index.boxes <= manifestLimits.listed;
    const checksums = isListed ? undefined : checksumsName(this.fileTag);
    const bytes = encodeManifest(checksums === undefined ? manifest : { ...manifest, checksums });
    try {
      if (checksums !== undefined) await writeBytes(fs, join(this.path, checksums), index!.checksums);
      if (fs.unfinished) await this.#putManifest(bytes);
      else {
        await writeBytes(fs, join(this.path, MANIFEST_FILE), bytes);
        await fs.syncFolder(this.path);
        await this.#takePlace();
      }
    } catch (error) {
      throw diskError(error, this.finalPath, "committing");
    }
    endAttempt(this.attempt);
    return this.#tidy();
  }

  /** Of several saves of one step at the same moment, the store lets one do this, or with `overwrite` each in its turn. */
  async #putManifest(bytes: Uint8Array): Promise<void> {
    this.#isUncertain = true;
    try {
      if (this.#options.overwrite) return await writeBytes(this.#fileSystem, this.#manifest, bytes);
      while (!(await this.#fileSystem.unfinished!.createOnce(this.#manifest, bytes))) {
        // An answer may get lost, and what is asked again finds what it did itself.
        if (await this.isCommitted()) return;
        this.#isUncertain = false;
        await this.#rejectExisting();
        // Whose step was in the way has taken it away since.
        this.#isUncertain = true;
      }
    } catch (error) {
      if (!this.#isUncertain || !(await this.isCommitted().catch(() => false))) throw error;
    }
  }

  /** The folder gets the step's name, or its files go into the step that they replace. Either way the step is whole at every instant. */
  async #takePlace(): Promise<void> {
    const fs = this.#fileSystem;
    for (let tries = 1; ; tries++) {
      if (!this.#options.overwrite) await this.#rejectExisting();
      else if ((await fs.kind(this.finalPath)) !== undefined && (await this.#moveIn())) return;
      try {
        await fs.rename(this.path, this.finalPath);
        return await fs.syncFolder(this.#run);
      } catch (error) {
        // Another save may have made the step meanwhile, and a third one removed it.
        if (tries >= TRIES || !isTaken(error)) throw error;
      }
    }
  }

  /** The manifest replaces the other one last, by one rename. False where the step has been removed before anything was moved. */
  async #moveIn(): Promise<boolean> {
    const fs = this.#fileSystem;
    const move = (name: string) => fs.rename(join(this.path, name), join(this.finalPath, name));
    const shards = (await fs.list(this.path)).map(({ name }) => name).filter((name) => name !== MANIFEST_FILE);
    // The folder's own name tells the next save, also after a power cut, whose files these are.
    await fs.syncFolder(this.#run);
    for (const [moved, name] of shards.entries()) {
      try {
        await move(name);
      } catch (error) {
        if (moved === 0 && isMissing(error)) return false;
        throw error;
      }
    }
    await fs.syncFolder(this.finalPath);
    await move(MANIFEST_FILE);
    try {
      await fs.syncFolder(this.finalPath);
    } catch (error) {
      // The step is whole since that rename: another job's retention has removed it as any other step.
      if (!isMissing(error)) throw error;
    }
    return true;
  }

  /** Removes what this attempt has written so far. `mayWrite`: other ranks may still be writing. */
  async abandon(mayWrite = false): Promise<void> {
    await this.#endPulse?.();
    // What they put after the sign has gone would never be found: the sign stays until this process has ended.
    if (mayWrite && this.#fileSystem.unfinished) return;
    if (!this.#isUncertain) await this.#removeOwn().catch(() => {}); // the next save sweeps it
    endAttempt(this.attempt);
  }

  async #tidy(): Promise<string[]> {
    const fs = this.#fileSystem;
    const { keep } = this.#options;
    const warnings: string[] = [];
    const attempt = async (what: string, body: () => Promise<void>) => {
      await body().catch((error: unknown) => warnings.push(diskError(error, what, "tidying").message));
    };
    await this.#endPulse?.();
    await attempt(this.#run, async () => {
      // What the step replaced goes with this save's own sign.
      await this.#sweep();
    });
    await attempt(this.#run, async () => {
      if (keep === undefined) return;
      const { removeSteps, stepsThatGo } = await import("./retention");
      const steps = (await stepsThatGo(fs, this.#run, keep)).filter(({ path }) => path !== this.finalPath);
      await removeSteps(fs, this.#run, steps, this.attempt, attempt);
    });
    return warnings;
  }

  /** Removes this save's sign, what of its files is not the step's, and folders that it made and nobody else uses. */
  async #removeOwn(): Promise<void> {
    const { removeLeftover } = await import("./leftovers");
    await removeLeftover(this.#fileSystem, this.#sign);
    for (const folder of [...this.#made].reverse()) await this.#fileSystem.removeEmpty?.(folder);
  }

  async #sweep(): Promise<void> {
    const { sweep } = await import("./leftovers");
    await sweep(this.#fileSystem, this.#run);
  }
}

/** Whether a folder could not get a name because another has it. */
function isTaken(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOTEMPTY" || code === "EEXIST" || code === "EPERM"; // the last on Windows
}

/** Runs `body` again and again, never twice at once, whether or not it fails; keeps no process alive. Returns its end. */
function pulse(body: () => Promise<void>, milliseconds: number): () => Promise<void> {
  let last = Promise.resolve();
  const timer: { unref?(): void } | number = setInterval(() => {
    last = last.then(body).catch(() => {});
  }, milliseconds);
  // Node's timers hold their process up, a browser's do not.
  if (typeof timer === "object") timer.unref?.();
  return () => {
    clearInterval(timer as never);
    return last;
  };
}

/** Makes the folder and its parents, each durable before the next is made in it. Returns those that it made. */
async function makeDurable(fileSystem: FileSystem, folder: string): Promise<string[]> {
  const missing: string[] = [];
  let there = folder;
  for (; there !== dirname(there) && (await fileSystem.kind(there)) === undefined; there = dirname(there))
    missing.unshift(there);
  // A save that died may have made this one and no more. A folder of somebody else's may forbid this.
  await fileSystem.syncFolder(dirname(there)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EACCES" && error.code !== "EPERM") throw error;
  });
  for (const path of missing) {
    await fileSystem.makeFolder(path);
    await fileSystem.syncFolder(dirname(path));
  }
  return missing;
}
