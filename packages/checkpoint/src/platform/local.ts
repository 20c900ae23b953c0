import { check, show } from "@opt/core";
import { platform } from "#platform";
import type { FileSystem } from "../stores/file-system";

/** Where paths lead when no `fileSystem` is given: the machine's own disk; in a browser, the page's own files (OPFS). */
export const localFileSystem: FileSystem = platform.fileSystem;

/** What an option names, else the local one. @throws OptError BAD_ARGUMENT for anything but a FileSystem */
export function fileSystemOf(given: FileSystem = localFileSystem): FileSystem {
  const isOne = typeof given?.open === "function";
  check(isOne, "BAD_ARGUMENT", "fileSystem", () => `must be a FileSystem, got ${show(given)}.`);
  return given;
}

/** Where a path is written to: what an option names, else the local one. @throws OptError BAD_ARGUMENT for an address without a store */
export function outputOf(path: string, given?: FileSystem): FileSystem {
  const isLocal = given !== undefined || !/^[a-z][a-z0-9+.-]+:\/\//i.test(path);
  const problem = () => `what is written must be of this machine where no fileSystem is given, got ${path}.`;
  const cure = "Give { fileSystem }, for example s3FileSystem of @opt/checkpoint/s3.";
  check(isLocal, "BAD_ARGUMENT", path, problem, cure);
  return fileSystemOf(given);
}
