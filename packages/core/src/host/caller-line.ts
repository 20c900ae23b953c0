/** The line of the user's program that called us. */

/** Files of Opt's packages, in a workspace or installed. */
const OURS = /[\\/](?:packages[\\/][^\\/]+[\\/](?:src|dist)|@opt[\\/][^\\/]+)[\\/](?!.*\.test\.)/;
/** The end of a stack's line: file, line, column. */
const PLACE = /\(?((?:file:\/\/)?[^\s()]+):(\d+):\d+\)?$/;

/** "train.js:12", or "an unknown line" where the engine has no stack. */
export function callerLine(): string {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 50;
  const { stack = "" } = new Error();
  Error.stackTraceLimit = limit;
  const frames = stack.split("\n").filter((line) => PLACE.test(line) && !OURS.test(line) && !line.includes("node:"));
  const [, file, line] = PLACE.exec(frames[0] ?? "") ?? [];
  return file === undefined ? "an unknown line" : `${file.split(/[\\/]/).at(-1)}:${line}`;
}
