/** A folder for what the tests of a run write, deleted at its end: a worker that is stopped deletes nothing. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where all projects of a run find the modules that one has transformed. */
export const transformedIn = (folder: string) => join(folder, `opt-transformed-${process.pid}`);

export default function setup() {
  const before = tmpdir();
  if (before.includes("opt-tests-")) return undefined; // each project calls this: the first one's holds for all
  const folder = mkdtempSync(join(before, "opt-tests-"));
  chmodSync(folder, 0o755); // for tests that give up root's rights
  process.env.TMPDIR = folder;
  return () => {
    process.env.TMPDIR = before;
    for (const each of [folder, transformedIn(before)]) rmSync(each, { recursive: true, force: true, maxRetries: 3 });
  };
}
