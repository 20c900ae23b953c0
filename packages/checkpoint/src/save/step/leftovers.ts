/** What saves that died have left: folders and files with a suffix, which no reader looks at, and whose owners tell whether they live. */

import { MANIFEST_FILE, MAX_MANIFEST_BYTES, parseManifest } from "../../format/manifest";
import { readWhole } from "../../format/source";
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

/** What a store is tried with lies beside an attempt. */
const PROBE = /\.probe-[0-9a-f]+$/;

/** Everything with a suffix in a run's folder. Throws MISSING, IO. */
export async function leftoversOf(fileSystem: FileSystem, folder: string): Promise<Leftover[]> {
  const found: Leftover[] = [];
  try {
    for (const { name } of await fileSystem.list(folder)) {
      const leftover = await look(fileSystem, join(folder, name)).catch(ifGone);
      if (leftover) found.push(leftover);
    }
  } catch (error) {
    throw diskError(error, folder, "listing");
  }
  return found;
}

/** What is gone by the time it is looked at is no leftover: several saves may be sweeping. */
function ifGone(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}

/** Removes one. Where nothing is renamed, its files lie among those of the step that it was to become: the step's and those of saves at work stay. */
export async function removeLeftover(fileSystem: FileSystem, path: string): Promise<void> {
  const [, step] = /^(step-\d+)\.tmp-.+$/.exec(basename(path)) ?? [];
  const isSave = step !== undefined && !PROBE.test(path);
  if (fileSystem.unfinished && isSave) await removeUnclaimed(fileSystem, join(dirname(path), step), path);
  await fileSystem.remove(path);
}

async function removeUnclaimed(fileSystem: FileSystem, step: string, sign: string): Promise<void> {
  // In this order: a save shows its sign before its first file, and takes it away after its manifest is there.
  const listed = [
    ...(await fileSystem.list(step)).map(({ name }) => name),
    ...(await fileSystem.unfinished!.list(step)),
  ];
  const files = listed.filter((name) => /^rank-\d+-[0-9a-f]{12}\.safetensors$/.test(name));
  if (files.length === 0) return;
  const claimed = new Set<string>();
  const tags = new Set<string>();
  for (const { path, owner } of await leftoversOf(fileSystem, dirname(step))) {
    if (path === sign || owner === "dead" || !path.startsWith(`${step}.tmp-`)) continue;
    tags.add(fileTagOf(path));
  }
  const manifest = join(step, MANIFEST_FILE);
  if ((await fileSystem.kind(manifest)) === "file") {
    const { files: own } = parseManifest(await readWhole(fileSystem, manifest, MAX_MANIFEST_BYTES), manifest);
    for (const { name } of own) claimed.add(name);
  }
  const isClaimed = (name: string) =>
    claimed.has(name) || tags.has(name.slice(-"0123456789ab.safetensors".length, -".safetensors".length));
  const unclaimed = new Set(files.filter((name) => !isClaimed(name)));
  for (const name of unclaimed) {
    await fileSystem.unfinished!.discard(join(step, name));
    await fileSystem.remove(join(step, name));
  }
  // Some stores keep folders that nothing is in.
  if (listed.every((name) => unclaimed.has(name))) await fileSystem.remove(step);
}

async function look(fileSystem: FileSystem, path: string): Promise<Leftover | undefined> {
  const [, step, kind, attempt] = /^(step-\d+)\.(tmp|old)-(.+)$/.exec(basename(path)) ?? [];
  if (kind === undefined) return undefined;
  if (kind === "old") {
    // Until the new step has its name, the one that was set aside is the step.
    const isReplaced = (await fileSystem.kind(join(dirname(path), step!, MANIFEST_FILE))) === "file";
    return isReplaced ? { path, owner: "dead" } : undefined;
  }
  return { path, owner: await ownerOf(fileSystem, path, attempt!) };
}

async function ownerOf(fileSystem: FileSystem, path: string, attempt: string): Promise<Leftover["owner"]> {
  const life = lifeOf(attempt.replace(PROBE, ""));
  if (life !== "unknown") return life;
  return (await lastChange(fileSystem, path)) < Date.now() - DEAD_AFTER ? "dead" : "unknown";
}

/** A long write changes its file, not the folder that it is in. */
async function lastChange(fileSystem: FileSystem, path: string): Promise<number> {
  let last = await fileSystem.modified(path);
  if ((await fileSystem.kind(path)) !== "folder") return last;
  for (const { name } of await fileSystem.list(path)) {
    last = Math.max(last, await fileSystem.modified(join(path, name)).catch(() => 0));
  }
  return last;
}
