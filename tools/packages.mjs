/** The packages that are published, and the tarballs their users get. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root, start } from "./run.mjs";

/**
 * @typedef {Record<string, string>} Versions
 * @typedef {{ name: string, version: string, private?: boolean, folder: string,
 *   dependencies?: Versions, exports?: Record<string, unknown>, peerDependencies?: Versions, optionalDependencies?: Versions }} Package
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
export async function build() {
  const { ok, stdout, stderr } = await start("nx", ["run-many", "-t", "build", "--parallel=2"], { quiet: true });
  if (!ok) throw new Error(`[build] a package does not build.\n${stdout}${stderr}`);
}

/**
 * Packs every public package as it would be published.
 * @param {string} destination an existing folder
 */
export async function pack(destination) {
  const workspaces = publicPackages().map(({ name }) => `--workspace=${name}`);
  const options = ["pack", "--loglevel=error", "--pack-destination", destination];
  const { ok, stderr } = await start("npm", [...options, ...workspaces], { quiet: true });
  if (!ok) throw new Error(`[pack] npm cannot pack the packages: ${stderr}`);
}

/**
 * Where `pack` puts the tarball of a package.
 * @param {string} destination
 * @param {Package} package_
 */
export function tarballOf(destination, { name, version }) {
  return join(destination, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`);
}
