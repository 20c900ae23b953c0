/** The line of the user's program that called us. */

/** Installed packages. */
const INSTALLED = /\/@opt\/[^/]+\//;
/** This file in the repository. */
const SOURCE = /^file:\/\/\/?(.+\/packages\/)core\/(?:src|dist)\//;
/** The end of a stack's line: file, line, column. */
const PLACE = /\(?((?:file:\/\/)?[^\s()]+):(\d+):\d+\)?$/;

/** "train.js:12", or "an unknown line" where the engine has no stack. */
export function callerLine(): string {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 50;
  const { stack = "" } = new Error();
  Error.stackTraceLimit = limit;
  const frames = stack.split("\n").filter((line) => PLACE.test(line) && !isOurs(line) && !line.includes("node:"));
  const [, file, line] = PLACE.exec(frames[0] ?? "") ?? [];
  return file === undefined ? "an unknown line" : `${file.split(/[\\/]/).at(-1)}:${line}`;
}

/** In the repository it knows our folder: users have `packages/` of their own. */
function isOurs(line: string): boolean {
  const path = line.replaceAll("\\", "/");
  const [, folder] = SOURCE.exec(import.meta.url) ?? [];
  const isPackage = INSTALLED.test(path) || (folder !== undefined && path.includes(folder));
  return isPackage && !path.includes(".test.");
}
