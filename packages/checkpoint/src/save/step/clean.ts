/** Removing by hand what saves that died have left; the next save does it by itself. */
import { checkOptions, OptError } from "@opt/core";
import { fileSystemOf } from "../../platform/local";
import { checkedPath, diskError, type FileSystem } from "../../stores/file-system";
import { type Leftover, leftoversOf, removeLeftover } from "./leftovers";

export interface CleanOptions {
  /** Remove also what belongs to processes that cannot be seen from here. Make sure that they are gone. */
  readonly force?: boolean;
  /** Remove nothing, only tell. */
  readonly dryRun?: boolean;
  readonly fileSystem?: FileSystem;
}

export interface CleanResult {
  readonly removed: readonly string[];
  /** What stays: saves in progress, and leftovers of processes that cannot be seen from here. */
  readonly kept: readonly Leftover[];
}

/** See operations.ts. */
export async function cleanCheckpoints(folder: string, options: CleanOptions = {}): Promise<CleanResult> {
  checkedPath("cleanCheckpoints", folder);
  checkOptions("cleanCheckpoints", options, { force: "boolean", dryRun: "boolean", fileSystem: "any" });
  const { force = false, dryRun = false } = options;
  const fileSystem = fileSystemOf(options.fileSystem);
  const leftovers = await leftoversOf(fileSystem, folder).catch((cause: OptError) => {
    if (cause.code !== "MISSING") throw cause;
    throw new OptError("MISSING", folder, "there is no such folder.", "Check the path.", { cause });
  });
  const goes = ({ owner }: Leftover) => owner === "dead" || (force && owner === "unknown");
  const removed: string[] = [];
  if (!dryRun) await fileSystem.syncFolder(folder); // as the next save does before it removes
  for (const leftover of leftovers.filter(goes)) {
    if (!dryRun) {
      await removeLeftover(fileSystem, leftover.path).catch((error: unknown) => {
        throw diskError(error, leftover.path, "removing");
      });
    }
    removed.push(leftover.path);
  }
  return { removed, kept: leftovers.filter((leftover) => !goes(leftover)) };
}
