/** Knows what was saved and who was told what, and says where the disk disagrees. */
import { type ErrorCode, OptError } from "@opt/core";
import { readManifest } from "../../src/format/manifest";
import { readWhole } from "../../src/format/source";
import { listSteps } from "../../src/format/steps";
import { loadCheckpoint } from "../../src/operations";
import type { FileSystem } from "../../src/stores/file-system";
import { join } from "../../src/stores/path";

export const RUN = "/runs/a";

/** What a promise of the package was broken by. */
export class Violation extends Error {}

export interface Save {
  /** In every element of its tensors. */
  readonly id: number;
  readonly step: number;
  readonly keep: number | undefined;
  readonly overwrite: boolean;
}

/** A save holds a tensor of two columns, which ranks cut by rows, and a scalar. */
export const ROWS = 5;

export class Oracle {
  /** By step, the saves whose contents may be there. Those that were told last, and those since that may have ended or not. */
  readonly #possible = new Map<number, Set<number>>();
  /** Steps that were told to be there and that nothing may have removed. */
  readonly #promised = new Set<number>();
  /** With the saves of the same step that have run at the same time. */
  readonly #running = new Map<Save, Set<number>>();
  /** By step, all that was ever saved as it. */
  readonly #ever = new Map<number, Set<number>>();
  /** By step, the save that was told first that it has made it, where nothing was to overwrite it. */
  readonly #makers = new Map<number, number>();
  readonly #overwritten = new Set<number>();
  #keep: number | undefined;
  /** Several jobs save into the run: one's steps may be lost that another's retention has counted. */
  isShared = false;

  /** Steps that may be there, oldest first. */
  get steps(): number[] {
    return [...this.#possible.keys()].sort((a, b) => a - b);
  }

  begins(save: Save): void {
    const others = [...this.#running].filter(([one]) => one.step === save.step && one !== save);
    if (!this.#running.has(save)) {
      for (const [, ids] of others) ids.add(save.id);
      this.#running.set(save, new Set(others.map(([one]) => one.id)));
    }
    this.#ever.set(save.step, (this.#ever.get(save.step) ?? new Set()).add(save.id));
    if (save.keep !== undefined) this.#keep = Math.min(save.keep, this.#keep ?? save.keep);
    if (save.overwrite) this.#overwritten.add(save.step);
    // What is promised and must not be replaced has no other contents, unless another job's retention takes it first.
    const mayBeRetired = this.isShared && this.#keep !== undefined;
    if (!save.overwrite && this.#promised.has(save.step) && !mayBeRetired) return;
    const possible = this.#possible.get(save.step) ?? new Set();
    this.#possible.set(save.step, possible.add(save.id));
    if (save.overwrite) for (const [one] of others) possible.add(one.id);
  }

  /** All that runs of this save has ended. */
  ended(save: Save): void {
    this.#running.delete(save);
  }

  /** A rank was told that the save's step is there. */
  succeeded(save: Save): void {
    const maker = this.#makers.get(save.step) ?? save.id;
    this.#makers.set(save.step, maker);
    const mayBeGone = this.#keep !== undefined || this.#overwritten.has(save.step);
    if (maker !== save.id && !mayBeGone)
      throw new Violation(`saves ${maker} and ${save.id} both made step ${save.step}`);
    this.#possible.set(save.step, new Set([save.id, ...this.#running.get(save)!]));
    this.#promised.add(save.step);
  }

  /** All that is on the disk now, against all that was said. `isSettled`: nothing of it can get lost any more. */
  async check(fileSystem: FileSystem, isSettled: boolean, loads: boolean): Promise<void> {
    const steps = (await listSteps(fileSystem, RUN).catch(ifMissing)) ?? [];
    const there = steps.map(({ step }) => step);
    for (const { step, path } of steps) {
      const id = await readStep(fileSystem, step, path);
      const possible = this.#possible.get(step) ?? new Set();
      if (!possible.has(id)) throw new Violation(`step ${step} is of save ${id}, it may be of ${[...possible]}`);
      if (!isSettled) continue;
      this.#possible.set(step, new Set([id]));
      this.#promised.add(step);
    }
    for (const step of this.#possible.keys()) {
      if (there.includes(step)) continue;
      const newer = there.filter((one) => one > step).length;
      const isRetired = this.#keep !== undefined && newer >= (this.isShared ? 1 : this.#keep);
      if (this.#promised.has(step) && !isRetired) throw new Violation(`step ${step} was there and is lost`);
      if (!isSettled) continue;
      this.#possible.delete(step);
      this.#promised.delete(step);
    }
    const latest = there.at(-1);
    if (latest === undefined || !loads) return;
    const loaded = await loadLatest(fileSystem).catch((error: unknown) => {
      throw new Violation(`the latest step cannot be loaded: ${error}`);
    });
    if (loaded.step !== latest) throw new Violation(`step ${latest} is the latest, ${loaded.step} was loaded`);
  }

  /** What a reader has got, maybe while others were saving. */
  read(step: number, id: number): void {
    const possible = (this.isShared ? this.#ever : this.#possible).get(step);
    if (!possible?.has(id)) throw new Violation(`a reader got save ${id} as step ${step}`);
  }
}

/** What is in a run and of no step. */
export async function leftOver(fileSystem: FileSystem): Promise<string[]> {
  const left: string[] = [];
  for (const { name } of await fileSystem.list(RUN).catch(() => [])) {
    const path = join(RUN, name);
    const manifest = /^step-\d+$/.test(name) ? await readManifest(fileSystem, path).catch(() => undefined) : undefined;
    if (!manifest) {
      left.push(name);
      continue;
    }
    const known = new Set(["manifest.json", ...manifest.files.map((file) => file.name)]);
    const files = (await fileSystem.list(path)).map((file) => file.name);
    const uploads = (await fileSystem.unfinished?.list(path)) ?? [];
    left.push(...[...files, ...uploads].filter((file) => !known.has(file)).map((file) => join(name, file)));
  }
  return left;
}

/** The save that a whole step is of. Files are read here by hand: not by what is tested, and with less memory. */
async function readStep(fileSystem: FileSystem, step: number, path: string): Promise<number> {
  try {
    const manifest = await readManifest(fileSystem, path);
    const ids = new Set<unknown>([manifest.values.id]);
    let elements = 0;
    for (const { file, byteOffset, byteLength } of manifest.tensors.flatMap(({ boxes }) => boxes)) {
      const bytes = await readWhole(fileSystem, join(path, manifest.files[file]!.name), 1 << 20);
      for (const id of bytes.subarray(byteOffset, byteOffset + byteLength)) ids.add(id);
      elements += byteLength;
    }
    if (elements !== 2 * ROWS + 1) throw new Error(`it has ${elements} elements`);
    return onlyOne(ids, step);
  } catch (error) {
    throw error instanceof Violation ? error : new Violation(`step ${step} is not whole: ${error}`);
  }
}

function onlyOne(ids: ReadonlySet<unknown>, step: number | undefined): number {
  if (ids.size > 1) throw new Violation(`step ${step} is of several saves: ${[...ids]}`);
  return [...ids][0] as number;
}

/** Loads the latest step; every element of it must tell the same save. Throws what loading throws. */
export async function loadLatest(fileSystem: FileSystem, run = RUN): Promise<{ id: number; step: number }> {
  const { step, tensors, values } = await loadCheckpoint(run, { fileSystem, as: "plain" });
  const elements = ["rows", "same"].flatMap((name) => [...(tensors[name]!.data as Uint8Array)]);
  return { id: onlyOne(new Set([values.id, ...elements]), step), step: step! };
}

/** Nothing was ever saved there. */
function ifMissing(error: unknown): undefined {
  if (!hasCode(error, "MISSING")) throw error;
}

export function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof OptError && error.code === code;
}
