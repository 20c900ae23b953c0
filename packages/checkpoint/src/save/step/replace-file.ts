/** One file written whole or not at all: readers of its name see the old one or the new one. */

import { check } from "@opt/core";
import { diskError, type FileSystem, type FolderEntry } from "../../stores/file-system";
import { basename, dirname, join } from "../../stores/path";
import { type Attempt, endAttempt, lifeOf, newAttempt } from "./owner";

/** A place that is to be replaced. */
export interface Replacement {
  readonly target: string;
  readonly temporary: string;
  readonly attempt: Attempt;
  readonly kind: FolderEntry["kind"] | undefined;
}

/** Runs `body`, whose new file or folder goes where it fails. `doing` is for messages. */
export async function replacing<T>(
  fileSystem: FileSystem,
  path: string,
  doing: string,
  body: (replaced: Replacement) => Promise<T>,
): Promise<T> {
  const target = fileSystem.resolve(path);
  const attempt = newAttempt();
  const { unfinished } = fileSystem;
  const temporary = unfinished ? target : `${target}.tmp-${attempt}`;
  try {
    if (!unfinished) await sweep(fileSystem, target).catch(() => {}); // whether it works is no matter of this one
    return await body({ target, temporary, attempt, kind: await fileSystem.kind(target) });
  } catch (error) {
    await (unfinished ? unfinished.discard(target) : fileSystem.remove(temporary)).catch(() => {}); // the first error is the one that tells
    throw diskError(error, target, doing);
  } finally {
    endAttempt(attempt);
  }
}

/** @throws OptError DUPLICATE if something is there that may not be replaced */
export function checkFree(path: string, isTaken: boolean, overwrite = false): void {
  check(
    !isTaken || overwrite,
    "DUPLICATE",
    path,
    () => "something is there already.",
    "Pass overwrite: true, or write elsewhere.",
  );
}

/** `write` makes the file under the name it is given, synced; then it takes the place of `path`. */
export function replaceFile<T>(
  fileSystem: FileSystem,
  path: string,
  { doing, overwrite }: { readonly doing: string; readonly overwrite: boolean | undefined },
  write: (temporary: string) => Promise<T>,
): Promise<T> {
  return replacing(fileSystem, path, doing, async ({ target, temporary, kind }) => {
    const isFile = kind === undefined || kind === "file";
    check(isFile, "BAD_ARGUMENT", target, () => "the output must be a file, a folder is there.", "Write elsewhere.");
    checkFree(target, kind === "file", overwrite);
    if (fileSystem.unfinished) return write(target);
    const folder = dirname(target);
    const hasFolder = (await fileSystem.kind(folder)) === "folder";
    check(hasFolder, "MISSING", target, () => `there is no folder ${folder}.`, "Make it, or write elsewhere.");
    const result = await write(temporary);
    await fileSystem.rename(temporary, target);
    await fileSystem.syncFolder(folder);
    return result;
  });
}

/** Removes what writers of the same name that died have left; what one had set aside gets its name again where nothing has it. */
async function sweep(fileSystem: FileSystem, target: string): Promise<void> {
  const prefix = `${basename(target)}.`;
  for (const { name } of await fileSystem.list(dirname(target))) {
    const [, kind, attempt] = /^(tmp|old)-(.+)$/.exec(name.startsWith(prefix) ? name.slice(prefix.length) : "") ?? [];
    if (attempt === undefined || lifeOf(attempt) !== "dead") continue;
    const path = join(dirname(target), name);
    if (kind === "old" && (await fileSystem.kind(target)) === undefined) await fileSystem.rename(path, target);
    else await fileSystem.remove(path);
  }
}
