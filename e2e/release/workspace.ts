/** A clone of the workspace for a rehearsal, with its packages installed and the binaries that are built here. */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { platformPackages } from "../../tools/workspace/platforms.mjs";
import { root, run, start } from "../../tools/workspace/run.mjs";

export async function cloneWorkspace(destination: string): Promise<void> {
  const cloned = run("git", ["clone", "-q", root, destination], { quiet: true });
  if (!cloned.ok) throw new Error(`[rehearse] git cannot clone: ${cloned.stderr}`);
  const options = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  const installed = await start("npm", ["ci", ...options], { quiet: true, cwd: destination });
  if (!installed.ok) throw new Error(`[rehearse] npm cannot install: ${installed.stderr}`);
  for (const { folder, missing } of platformPackages()) {
    const copy = join(destination, relative(root, folder));
    cpSync(folder, copy, { recursive: true });
    // Those of other platforms, which nobody opens in a rehearsal, are empty files.
    for (const file of missing.map((name) => join(copy, name))) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, "");
    }
  }
}

export function commit(folder: string, message: string): void {
  const author = ["-c", "user.name=rehearsal", "-c", "user.email=rehearsal@localhost", "-c", "commit.gpgsign=false"];
  const options = ["commit", "-q", "--all", "--no-verify", "-m", message];
  run("git", ["add", "-A"], { cwd: folder, quiet: true });
  const { ok, stderr } = run("git", [...author, ...options], { cwd: folder, quiet: true });
  if (!ok) throw new Error(`[rehearse] git cannot commit: ${stderr}`);
}
