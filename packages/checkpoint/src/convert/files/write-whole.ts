/** Files and folders that appear complete or not at all: written under another name, made durable, then renamed. */

import { check } from "@opt/core";
import { outputOf } from "../../platform/local";
import { checkFree, replaceFile, replacing } from "../../save/step/replace-file";
import type { FileSystem, OpenFile } from "../../stores/file-system";
import { dirname } from "../../stores/path";

/** What every writer of another system's files takes. */
export interface ExportOptions {
  readonly maxMemory?: number;
  readonly progress?: (bytes: number) => void;
  readonly fileSystem?: FileSystem;
  readonly overwrite?: boolean;
}

/**
 * Writes one file by `body`, which tells its length.
 *
 * @throws OptError BAD_ARGUMENT if one is there, IO, and what `body` throws: then there is no new file
 */
export async function writeWhole(
  path: string,
  options: ExportOptions,
  body: (file: OpenFile) => Promise<number>,
): Promise<{ byteLength: number }> {
  const fileSystem = outputOf(path, options.fileSystem);
  return replaceFile(fileSystem, path, { doing: "writing", overwrite: options.overwrite }, async (temporary) => ({
    byteLength: await writeFile(fileSystem, temporary, body),
  }));
}

/** One file, synced. */
export async function writeFile(
  fileSystem: FileSystem,
  path: string,
  body: (file: OpenFile) => Promise<number>,
): Promise<number> {
  const file = await fileSystem.open(path, "create");
  try {
    const byteLength = await body(file);
    await file.finish();
    return byteLength;
  } finally {
    await file.close();
  }
}

/**
 * Writes a folder whole or not at all; `body` gets the path to write under.
 *
 * @throws OptError BAD_ARGUMENT if something else is there, IO
 */
export async function writeFolder(
  path: string,
  options: ExportOptions,
  body: (folder: string, fileSystem: FileSystem) => Promise<void>,
): Promise<void> {
  const fileSystem = outputOf(path, options.fileSystem);
  check(
    !fileSystem.unfinished,
    "UNSUPPORTED",
    path,
    () => "other systems' folders are complete when they get their name, and nothing is renamed here.",
    "Write it to a disk and copy it.",
  );
  await replacing(fileSystem, path, "writing", async ({ target, temporary, attempt, kind }) => {
    const taken =
      kind === "file" || kind === "other" || (kind === "folder" && (await fileSystem.list(target)).length > 0);
    checkFree(path, taken, options.overwrite);
    await fileSystem.makeFolder(temporary);
    await body(temporary, fileSystem);
    await fileSystem.syncFolder(temporary);
    const old = `${target}.old-${attempt}`;
    if (kind !== undefined) await fileSystem.rename(target, old);
    try {
      await fileSystem.rename(temporary, target);
    } catch (error) {
      if (kind !== undefined) await fileSystem.rename(old, target);
      throw error;
    }
    await fileSystem.syncFolder(dirname(target));
    if (kind !== undefined) await fileSystem.remove(old);
  });
}
