import { platform } from "#platform";
import type { FileSystem } from "../stores/file-system";

/** Where paths lead when no `fileSystem` is given: the machine's own disk; in a browser, the page's own files (OPFS). */
export const localFileSystem: FileSystem = platform.fileSystem;
