/** A copy of the workspace for a rehearsal: its files as they are now, its own links between packages, everything else shared. */
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { workspaceFolders } from "../packages.mjs";
import { root, run } from "../run.mjs";
import { platformPackages } from "./platforms.mjs";

/** @param {string} destination */
export function copyWorkspace(destination) {
  const listed = run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { quiet: true });
  for (const file of listed.stdout.split("\0").filter((name) => name && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(destination, file)), { recursive: true });
    cpSync(join(root, file), join(destination, file));
  }
  shareModules(destination);
  copyBinaries(destination);
  run("git", ["init", "-q", "-b", "main"], { cwd: destination, quiet: true });
  commit(destination, "as it is");
}

/** node_modules by links, but for the workspace's own packages. @param {string} destination */
function shareModules(destination) {
  for (const place of ["", ...workspaceFolders()]) {
    const from = join(root, place, "node_modules");
    if (!existsSync(from)) continue;
    const to = join(destination, place, "node_modules");
    mkdirSync(to, { recursive: true });
    for (const name of readdirSync(from)) {
      const source = join(from, name);
      // Links of the workspace are relative: copied as they are, they lead into the copy.
      if (name.startsWith("@opt")) cpSync(source, join(to, name), { recursive: true, verbatimSymlinks: true });
      else if (name !== ".cache") symlinkSync(source, join(to, name));
    }
  }
}

/** The binaries that are built here. Those of other platforms, which nobody opens in a rehearsal, are empty files. @param {string} destination */
function copyBinaries(destination) {
  for (const { folder, binaries } of platformPackages()) {
    for (const file of binaries) {
      const [from, to] = [join(folder, file), join(destination, relative(root, folder), file)];
      mkdirSync(dirname(to), { recursive: true });
      if (existsSync(from))
        cpSync(dirname(file) === "." ? from : dirname(from), dirname(file) === "." ? to : dirname(to), {
          recursive: true,
        });
      else writeFileSync(to, "");
    }
  }
}

/** @param {string} folder @param {string} message */
export function commit(folder, message) {
  const author = ["-c", "user.name=rehearsal", "-c", "user.email=rehearsal@localhost", "-c", "commit.gpgsign=false"];
  run("git", ["add", "-A"], { cwd: folder, quiet: true });
  const { ok, stderr } = run("git", [...author, "commit", "-q", "--no-verify", "-m", message], {
    cwd: folder,
    quiet: true,
  });
  if (!ok) throw new Error(`[rehearse] git cannot commit: ${stderr}`);
}

/** @param {string} folder */
export function remove(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
