/** The packages that are published, and the tarballs their users get. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { root, start } from "./run.mjs";

const read = (/** @type {string} */ path) => JSON.parse(readFileSync(path, "utf8"));

/** The folders of npm's workspaces, as paths from the root: `packages/core`. */
export function workspaceFolders() {
  const patterns = /** @type {string[]} */ (read(join(root, "package.json")).workspaces);
  return patterns
    .flatMap((pattern) => {
      if (!pattern.endsWith("/*")) return [pattern];
      const room = pattern.slice(0, -2);
      return readdirSync(join(root, room)).map((name) => `${room}/${name}`);
    })
    .filter((folder) => existsSync(join(root, folder, "package.json")));
}

/**
 * @typedef {{ [condition: string]: string | Conditions }} Conditions
 * @typedef {Record<string, string>} Versions
 * @typedef {{ name: string, version: string, private?: boolean, description?: string, files?: string[], bin?: Versions,
 *   scripts?: Versions, publishConfig?: object, exports?: Conditions, imports?: Conditions, dependencies?: Versions, peerDependencies?: Versions,
 *   peerDependenciesMeta?: Record<string, { optional?: boolean }>, optionalDependencies?: Versions }} Manifest
 * @typedef {Manifest & { folder: string }} Package
 * @returns {Package[]}
 */
export function publicPackages() {
  return workspaceFolders()
    .map((folder) => ({ ...read(join(root, folder, "package.json")), folder: join(root, folder) }))
    .filter((manifest) => !manifest.private);
}

/** The packages of `packages/optimizers`. */
export const optimizerPackages = () =>
  publicPackages().filter(({ folder }) => basename(dirname(folder)) === "optimizers");

/**
 * Packs built packages, as `npm pack` does in their folders.
 * @param {string} destination an existing folder
 * @param {readonly Package[]} packages
 */
export async function pack(destination, packages = publicPackages()) {
  const folders = packages.map(({ folder }) => folder);
  const options = ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", destination];
  const { ok, stderr } = await start("npm", [...options, ...folders], { quiet: true });
  if (!ok) throw new Error(`[pack] npm cannot pack the packages: ${stderr}`);
}

/**
 * A project that has nothing but these packages.
 * @param {string} folder
 * @param {readonly string[]} packages names, or tarballs
 * @param {object} [manifest] what its package.json says beside them
 */
export async function installIn(folder, packages, manifest = {}) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, ...manifest }));
  const options = ["--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const { ok, stderr } = await start("npm", ["install", ...options, ...packages], { quiet: true, cwd: folder });
  if (!ok) throw new Error(`[packages] npm cannot install ${packages[0]} and others: ${stderr}`);
}

/**
 * Where `pack` puts the tarball of a package.
 * @param {string} destination
 * @param {Package} package_
 */
export function tarballOf(destination, { name, version }) {
  return join(destination, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`);
}

/** The program of another Node version, from the npm registry. @param {string} version */
export async function nodeOf(version) {
  // npm's package of Node is put in place by an install script, which .npmrc forbids otherwise.
  const env = { npm_config_ignore_scripts: "false", npm_config_loglevel: "error" };
  const asked = ["-y", `node@${version}`, "-p", "process.execPath"];
  const program = (await start("npx", asked, { quiet: true, env, minutes: 5 })).stdout.trim();
  return existsSync(program) ? program : undefined;
}
