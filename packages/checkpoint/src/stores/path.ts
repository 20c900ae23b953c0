/** Paths on any store: names between slashes; on the disk of Windows between backslashes too. */

const isWindows = globalThis.process?.platform === "win32";
const SEPARATORS = isWindows ? /[\\/]+/ : /\/+/;
const LAST_NAME = isWindows ? /[\\/]+[^\\/]+[\\/]*$/ : /\/+[^/]+\/*$/;

/** The parts, one inside of the other. */
export function join(...parts: readonly string[]): string {
  return parts
    .filter((part) => part !== "")
    .join("/")
    .replace(/\/{2,}/g, "/");
}

/** The last name. */
export function basename(path: string): string {
  return path.split(SEPARATORS).filter(Boolean).at(-1) ?? "";
}

/** The folder that the last name is in. */
export function dirname(path: string): string {
  const folder = path.replace(LAST_NAME, "");
  if (folder === path) return basename(path) === "" && path !== "" ? "/" : ".";
  // The root of a disk keeps its slash.
  return folder === "" || (isWindows && /^[A-Za-z]:$/.test(folder)) ? `${folder}/` : folder;
}
