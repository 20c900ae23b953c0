import { OptError, show } from "@opt/core";
import { join } from "../../stores/path";

/**
 * The path of a file that another file names.
 *
 * @throws OptError REFUSED for a name that leaves `folder`, or is no file name on some system
 */
export function insideOf(folder: string, name: unknown, where: string): string {
  const parts = typeof name === "string" ? name.split("/") : [];
  // A backslash or a drive letter is a way out on Windows only, but files travel.
  const unsafe = parts.length === 0 || parts.some((part) => part === "" || part === "." || part === "..");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a zero byte ends a name for the system.
  if (unsafe || /[\\:\u0000]/.test(`${parts}`)) {
    const problem = `a file inside of the checkpoint is needed, got ${show(name).slice(0, 200)}.`;
    throw new OptError("REFUSED", where, problem, "The checkpoint names files elsewhere: do not trust it.");
  }
  return join(folder, ...parts);
}
