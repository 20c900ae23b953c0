/**
 * The life of a step's folder: written under a temporary name, made durable, renamed, and only then may older ones go.
 * Whatever dies on the way leaves the older steps as they were and a folder that the next save sweeps away.
 */

import { OptError } from "@opt/core";
import { encodeManifest, MANIFEST_FILE, MAX_MANIFEST_BYTES, type Manifest, parseManifest } from "../../format/manifest";
import { readWhole } from "../../format/source";
import { listSteps, stepName } from "../../format/steps";
import { diskError, type FileSystem, isMissing } from "../../stores/file-system";
import { dirname, join } from "../../stores/path";
import type { Retention } from "./keep";
import { type Attempt, endAttempt, fileTagOf } from "./owner";
import { pulse } from "./pulse";

/** Well below the time after which a save that shows no sign is taken for dead. */
const SIGN_EVERY = 300_000;

/** How often two saves may set aside each other's step before one gives up. */
const TRIES = 20;

export interface CommitOptions {
  readonly overwrite: boolean;
  /** Which steps stay; all without it. */
  readonly keep?: Retention | undefined;
}

export class StepFolder {
  /** Where the files of the step are written. */
  readonly path: string;
  readonly attempt: Attempt;
  /** What the names of the files end with, where the step may replace another. */
  readonly fileTag: string | undefined;
  readonly #final: string;
  /** On stores without renames, an object that tells that this save is at work. */
  readonly #sign: string;
  readonly #fileSystem: FileSystem;
  #endPulse: (() => Promise<void>) | undefined;
  /** The manifest may be on its way still, although the store did not say so. */
  #isUncertain = false;

  /** The folder of an attempt that another rank began; `begin` begins one. */
  constructor(
    fileSystem: FileSystem,
    folder: string,
    step: number,
    attempt: Attempt,
    { overwrite }: { overwrite: boolean },
  ) {
    this.#fileSystem = fileSystem;
    this.#final = join(fileSystem.resolve(folder), stepName(step));
    this.attempt = attempt;
    this.fileTag = overwrite || fileSystem.unfinished ? fileTagOf(attempt) : undefined;
    this.#sign = `${this.#final}.tmp-${attempt}`;
    this.path = fileSystem.unfinished ? this.#final : this.#sign;
  }

  /** Creates the temporary folder. Throws DUPLICATE where the step exists already, IO, MISSING. */
  static async begin(
    fileSystem: FileSystem,
    folder: string,
    step: number,
    attempt: string,
    options: { overwrite: boolean },
  ): Promise<StepFolder> {
    const pending = new StepFolder(fileSystem, folder, step, attempt, options);
    try {
      await pending.#disk("creating", () => pending.#create(options.overwrite));
    } catch (error) {
      await pending.abandon();
      throw error;
    }
    return pending;
  }

  async #create(overwrite: boolean): Promise<void> {
    const fileSystem = this.#fileSystem;
    const folder = dirname(this.#final);
    if (!overwrite) await this.#refuseExisting();
    if (fileSystem.unfinished) {
      await this.#showSign();
      await this.#sweep().catch(() => {}); // as below
      return;
    }
    const isNew = (await fileSystem.kind(folder)) === undefined;
    await fileSystem.makeFolder(this.path);
    // What died here before must not fill the disk; whether sweeping works is no matter of this save.
    if (!isNew) await this.#sweep().catch(() => {});
    if (isNew) await fileSystem.syncFolder(dirname(folder));
  }

  get finalPath(): string {
    return this.#final;
  }

  /** Whether the step exists, and is of this attempt. */
  async isCommitted(): Promise<boolean> {
    const path = join(this.#final, MANIFEST_FILE);
    return parseManifest(await readWhole(this.#fileSystem, path, MAX_MANIFEST_BYTES), path).attempt === this.attempt;
  }

  async #exists(): Promise<boolean> {
    return (await this.#fileSystem.kind(join(this.#final, MANIFEST_FILE))) !== undefined;
  }

  async #refuseExisting(): Promise<void> {
    if (!(await this.#exists())) return;
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
      const bytes = encodeManifest(manifest);
      if (fs.unfinished) return this.#putManifest(bytes, options.overwrite);
      await this.#write(join(this.path, MANIFEST_FILE), bytes);
      await fs.syncFolder(this.path);
      await this.#takePlace(options.overwrite);
      await fs.syncFolder(dirname(this.#final));
    });
    endAttempt(this.attempt);
    return this.#tidy(options);
  }

  /** Of several saves of one step at the same moment, the store lets one do this, or with `overwrite` each in its turn. */
  async #putManifest(bytes: Uint8Array, overwrite: boolean): Promise<void> {
    const path = join(this.#final, MANIFEST_FILE);
    this.#isUncertain = true;
    try {
      if (overwrite) await this.#write(path, bytes);
      else if (!(await this.#fileSystem.unfinished!.createOnce(path, bytes))) {
        // An answer may get lost, and what is asked again finds what it did itself.
        if (await this.isCommitted()) return;
        this.#isUncertain = false;
        await this.#refuseExisting();
        // Whose step was in the way has taken it away since.
        await this.#putManifest(bytes, overwrite);
      }
    } catch (error) {
      if (!this.#isUncertain || !(await this.isCommitted().catch(() => false))) throw error;
    }
  }

  async #write(path: string, bytes: Uint8Array): Promise<void> {
    const file = await this.#fileSystem.open(path, "create", bytes.length);
    try {
      await file.write(bytes, 0);
      await file.finish();
    } finally {
      await file.close();
    }
  }

  /** Shown again now and then, so that those who cannot see this process know that it is at work. */
  async #showSign(): Promise<void> {
    const text = new TextEncoder().encode(this.attempt);
    await this.#fileSystem.unfinished!.createOnce(this.#sign, text);
    this.#endPulse = pulse(() => this.#write(this.#sign, text), SIGN_EVERY);
  }

  /** Gives the folder the step's name. Whoever else wants it at the same moment finds a whole step there, or gets it after us. */
  async #takePlace(overwrite: boolean): Promise<void> {
    const fs = this.#fileSystem;
    for (let tries = 0; ; tries++) {
      if (!overwrite) await this.#refuseExisting();
      // A set-aside step counts as the step until the new one has its name, so there is no instant without one.
      if ((await fs.kind(this.#final)) !== undefined)
        await fs.rename(this.#final, `${this.#final}.old-${this.attempt}.${tries}`).catch(unlessMissing);
      try {
        return await fs.rename(this.path, this.#final);
      } catch (error) {
        if (tries >= TRIES || (await fs.kind(this.path)) === undefined || !(await this.#exists())) throw error;
      }
    }
  }

  /** Removes what this attempt has written so far. */
  async abandon(): Promise<void> {
    await this.#endPulse?.();
    if (!this.#isUncertain) await this.#removeOwn().catch(() => {}); // the next save sweeps it
    endAttempt(this.attempt);
  }

  async #tidy({ keep }: CommitOptions): Promise<string[]> {
    const fs = this.#fileSystem;
    const folder = dirname(this.#final);
    const warnings: string[] = [];
    const attempt = async (what: string, body: () => Promise<void>) => {
      await body().catch((error: unknown) => warnings.push(diskError(error, what, "tidying").message));
    };
    await this.#endPulse?.();
    await attempt(folder, async () => {
      // What the step replaced goes with the sign.
      if (fs.unfinished) await this.#removeOwn();
      if (keep !== undefined) {
        const { stepsToRemove } = await import("./retention");
        const { removeLeftover } = await import("./leftovers");
        const doomed = await stepsToRemove(fs, await listSteps(fs, folder), keep);
        for (const { path } of doomed.filter((one) => one.path !== this.#final)) {
          await attempt(path, async () => {
            // Half a step must never look like one.
            const aside = `${path}.tmp-${this.attempt}`;
            if (fs.unfinished) {
              await fs.unfinished.createOnce(aside, this.attempt);
              await fs.remove(join(path, MANIFEST_FILE));
            } else await fs.rename(path, aside);
            await removeLeftover(fs, aside);
          });
        }
      }
      await this.#sweep();
    });
    return warnings;
  }

  /** Removes this save's sign, and what of its files is not the step's. */
  async #removeOwn(): Promise<void> {
    const { removeLeftover } = await import("./leftovers");
    await removeLeftover(this.#fileSystem, this.#sign);
  }

  /** Removes what dead saves have left. */
  async #sweep(): Promise<void> {
    const { leftoversOf, removeLeftover } = await import("./leftovers");
    for (const { path, owner } of await leftoversOf(this.#fileSystem, dirname(this.#final))) {
      if (path !== this.#sign && owner === "dead") await removeLeftover(this.#fileSystem, path);
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

/** Another save has been quicker. */
function unlessMissing(error: unknown): void {
  if (!isMissing(error)) throw error;
}
