/** One file written whole or not at all: readers of its name see the old one or the new one. */

import { check } from "@opt/core";
import { diskError, type FileSystem } from "../../stores/file-system";
import { basename, dirname, join } from "../../stores/path";
import { endAttempt, lifeOf, newAttempt } from "./owner";

/** `write` makes the file under the name it is given, synced; then it takes the place of `path`. `doing` is for messages. */
export async function replaceFile<T>(
  fileSystem: FileSystem,
  path: string,
  doing: string,
  write: (temporary: string) => Promise<T>,
): Promise<T> {
  const target = fileSystem.resolve(path);
  const attempt = newAttempt();
  const { unfinished } = fileSystem;
  const temporary = unfinished ? target : `${target}.tmp-${attempt}`;
  try {
    const there = await fileSystem.kind(target);
    const other = there === "folder" ? "a folder" : "a pipe, a socket or a device";
    const isFile = there === undefined || there === "file";
    check(isFile, "BAD_ARGUMENT", target, () => `the output must be a file, ${other} is there.`, "Write elsewhere.");
    if (unfinished) return await write(target);
    await sweep(fileSystem, target).catch(() => {}); // whether it works is no matter of this file
    const result = await write(temporary);
    await fileSystem.rename(temporary, target);
    await fileSystem.syncFolder(dirname(target));
    return result;
  } catch (error) {
    await (unfinished ? unfinished.discard(target) : fileSystem.remove(temporary)).catch(() => {}); // the first error is the one that tells
    const folder = dirname(target);
    const hasFolder = unfinished || (await fileSystem.kind(folder).catch(() => "folder")) === "folder";
    check(hasFolder, "MISSING", target, () => `there is no folder ${folder}.`, "Make it, or write elsewhere.");
    throw diskError(error, target, doing);
  } finally {
    endAttempt(attempt);
  }
}

/** Removes what writers of the same name that died have left; what one had set aside gets its name again where nothing has it. */
export async function sweep(fileSystem: FileSystem, target: string): Promise<void> {
  const prefix = `${basename(target)}.`;
  for (const { name } of await fileSystem.list(dirname(target))) {
    const [, kind, attempt] = /^(tmp|old)-(.+)$/.exec(name.startsWith(prefix) ? name.slice(prefix.length) : "") ?? [];
    if (attempt === undefined || lifeOf(attempt) !== "dead") continue;
    const path = join(dirname(target), name);
    if (kind === "old" && (await fileSystem.kind(target)) === undefined) await fileSystem.rename(path, target);
    else await fileSystem.remove(path);
  }
}
