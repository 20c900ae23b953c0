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
