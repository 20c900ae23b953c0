/** What saves that died have left: folders and files with a suffix, which no reader looks at, and whose owners tell whether they live. */

import { MANIFEST_FILE, readManifest } from "../../format/manifest";
import { diskError, type FileSystem, isMissing } from "../../stores/file-system";
import { basename, dirname, join } from "../../stores/path";
import { fileTagOf, lifeOf } from "./owner";

/** `dead`: safe to remove; `alive`: a save in progress; `unknown`: of a process that cannot be seen from here, and changed lately. */
export interface Leftover {
  readonly path: string;
  readonly owner: "dead" | "alive" | "unknown";
}

/** What nobody can be asked about is taken for dead when it has not changed for this long. */
const DEAD_AFTER = 3_600_000;

/** Everything with a suffix in a run's folder that is no step. @throws OptError MISSING, IO */
export async function leftoversOf(fileSystem: FileSystem, folder: string): Promise<Leftover[]> {
  const found: Leftover[] = [];
  try {
    for (const { name } of await fileSystem.list(folder)) {
      const path = join(folder, name);
      const [, , attempt] = suffixOf(path);
      if (attempt === undefined) continue;
      const owner = await ownerOf(fileSystem, path, attempt).catch(ifGone);
      if (owner) found.push({ path, owner });
    }
  } catch (error) {
    throw diskError(error, folder, "listing");
  }
  return found;
}

/** Removes what the dead have left. */
export async function sweep(fileSystem: FileSystem, folder: string): Promise<void> {
  const leftovers = await leftoversOf(fileSystem, folder);
  const dead = leftovers.filter(({ owner }) => owner === "dead");
  // Their names may not be durable: half of one must not come back as a step.
  if (dead.length > 0) await fileSystem.syncFolder(folder);
  for (const { path } of dead) await removeLeftover(fileSystem, path);
}

/** The step, and the attempt whose it is. */
function suffixOf(path: string): readonly (string | undefined)[] {
  return /^(step-\d+).*\.tmp-(.+)$/.exec(basename(path)) ?? [];
}

function exists(fileSystem: FileSystem, step: string): Promise<boolean> {
  return fileSystem.kind(join(step, MANIFEST_FILE)).then((kind) => kind === "file");
}

/** What is gone by the time it is looked at is no leftover: several saves may be sweeping. */
function ifGone(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}

/** Removes one, and its files among those of the step that it was to become or replace: the step's and those of saves at work stay. */
export async function removeLeftover(fileSystem: FileSystem, path: string): Promise<void> {
  const [, step] = suffixOf(path);
  await removeUnclaimed(fileSystem, join(dirname(path), step!), path).catch(ifGone);
  await fileSystem.remove(path);
}

async function removeUnclaimed(fileSystem: FileSystem, step: string, sign: string): Promise<void> {
  const { unfinished } = fileSystem;
  // In this order: a save shows its sign before its first file, and takes it away after its manifest is there.
  const listed = [...(await fileSystem.list(step)).map(({ name }) => name), ...((await unfinished?.list(step)) ?? [])];
  const files = listed.filter((name) => /^(rank-\d+|checksums)(-[0-9a-f]{12})?\.(safetensors|bin)$/.test(name));
  if (files.length === 0) return fileSystem.syncFolder(step);
  const claimed = new Set<string>();
  for (const { path, owner } of await leftoversOf(fileSystem, dirname(step))) {
    if (path !== sign && owner !== "dead" && path.startsWith(`${step}.tmp-`)) claimed.add(fileTagOf(path));
  }
  if (await exists(fileSystem, step)) {
    const { files, checksums } = await readManifest(fileSystem, step);
    for (const name of [...files.map((file) => file.name), checksums ?? MANIFEST_FILE]) claimed.add(name);
  }
  const tagOf = (name: string) => fileTagOf(name.slice(0, name.lastIndexOf(".")));
  const unclaimed = new Set(files.filter((name) => !claimed.has(name) && !claimed.has(tagOf(name))));
  // A power cut must not bring back the manifest that names them, nor, when the sign has gone, them.
  await fileSystem.syncFolder(step);
  for (const name of unclaimed) {
    await unfinished?.discard(join(step, name));
    await fileSystem.remove(join(step, name));
  }
  if (unclaimed.size > 0) await fileSystem.syncFolder(step);
  // Not with what is in it: another save may have come meanwhile.
  if (listed.every((name) => unclaimed.has(name))) await unfinished?.removeEmpty(step);
}

async function ownerOf(fileSystem: FileSystem, path: string, attempt: string): Promise<Leftover["owner"]> {
  const life = lifeOf(attempt);
  if (life !== "unknown") return life;
  // A long write changes its file, not the folder that it is in.
  let last = await fileSystem.modified(path);
  const inside = (await fileSystem.kind(path)) === "folder" ? await fileSystem.list(path) : [];
  for (const { name } of inside) last = Math.max(last, await fileSystem.modified(join(path, name)).catch(() => 0));
  return last < Date.now() - DEAD_AFTER ? "dead" : "unknown";
}
