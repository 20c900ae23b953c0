/** The packages that are published, and the tarballs their users get. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./run.mjs";

/**
 * @typedef {{ name: string, version: string, private?: boolean, folder: string }} Package
 * @returns {Package[]}
 */
export function publicPackages() {
  return readdirSync(join(root, "packages"))
    .map((name) => join(root, "packages", name))
    .filter((folder) => existsSync(join(folder, "package.json")))
    .map((folder) => ({ ...JSON.parse(readFileSync(join(folder, "package.json"), "utf8")), folder }))
    .filter((manifest) => !manifest.private);
}

/** Builds what changed since the last build. */
export function build() {
  const { ok, stdout, stderr } = run("nx", ["run-many", "-t", "build", "--parallel=2"], { quiet: true });
  if (!ok) throw new Error(`[build] a package does not build.\n${stdout}${stderr}`);
}

/**
 * Packs every public package as it would be published, and returns the path of each tarball by package name.
 * @param {string} destination an existing folder
 * @returns {Map<string, string>}
 */
export function pack(destination) {
  const tarballs = new Map();
  for (const { name, version, folder } of publicPackages()) {
    const options = { cwd: folder, quiet: true };
    const packed = run("npm", ["pack", "--loglevel=error", "--pack-destination", destination], options);
    if (!packed.ok) throw new Error(`[pack] npm cannot pack ${name}: ${packed.stderr}`);
    tarballs.set(name, join(destination, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`));
  }
  return tarballs;
}
