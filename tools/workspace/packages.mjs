/** The packages that are published, and the tarballs their users get. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, sep } from "node:path";
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
 * @typedef {Record<string, string>} Versions
 * @typedef {{ name: string, version: string, private?: boolean, folder: string, description?: string, keywords?: string[], type?: string,
 *   opt?: object, dependencies?: Versions, exports?: import("./nx/build.mjs").Conditions, imports?: import("./nx/build.mjs").Conditions, peerDependencies?: Versions, optionalDependencies?: Versions }} Package
 * @returns {Package[]}
 */
export function publicPackages() {
  return workspaceFolders()
    .map((folder) => ({ ...read(join(root, folder, "package.json")), folder: join(root, folder) }))
    .filter((manifest) => !manifest.private);
}

/** The packages of `packages/optimizers`. */
export const optimizerPackages = () => publicPackages().filter(isOptimizer);

/** @param {Package} package_ */
export const isOptimizer = ({ folder }) => basename(dirname(folder)) === "optimizers";

/**
 * An optimizer's manifest as npm gets it: all such packages are built and shipped alike, so each says only what is its own.
 * @param {Package} package_
 */
function optimizerManifest({ folder: _, opt: __, ...own }) {
  const { name, version, description, keywords, type, exports = {}, ...dependencies } = own;
  const { license, engines } = read(join(root, "package.json"));
  const entries = /** @type {[string, { default: string }][]} */ (Object.entries(exports)).map(
    ([entry, { default: file, ...source }]) =>
      /** @type {const} */ ([entry, { ...source, types: file.replace(/js$/, "d.ts"), default: file }]),
  );
  return {
    ...{ name, version, description, keywords, license, type },
    sideEffects: false,
    main: "./dist/index.js",
    types: "./dist/index.d.ts",
    exports: { ...Object.fromEntries(entries), "./package.json": "./package.json" },
    typesVersions: { "*": Object.fromEntries(entries.slice(1).map(([entry, { types }]) => [entry.slice(2), [types]])) },
    files: ["dist", "src", "!src/**/*.test.ts", "!src/**/*.soak.ts", "!src/**/__snapshots__", "CHANGELOG.md"],
    engines,
    ...dependencies,
  };
}

/**
 * Copies a built package as npm gets it, with its licence, its place in the workspace's repository and its whole manifest.
 * @param {Package} package_
 * @param {string} destination a folder for all copies
 * @returns {string} the copy's folder
 */
export function stage(package_, destination) {
  const { name, description, folder } = package_;
  const copy = join(destination, name.replace("/", "-"));
  cpSync(folder, copy, { recursive: true, filter: (path) => basename(path) !== "node_modules" });
  cpSync(join(root, "LICENSE"), join(copy, "LICENSE"));
  const readme = join(copy, "README.md");
  if (!existsSync(readme)) writeFileSync(readme, `# ${name}\n\n${description}. Npm installs it where it fits.\n`);
  const { repository } = read(join(root, "package.json"));
  const directory = relative(root, folder).replaceAll(sep, "/");
  const manifest = {
    ...(isOptimizer(package_) ? optimizerManifest(package_) : read(join(folder, "package.json"))),
    ...(repository && { repository: { ...repository, directory } }),
  };
  writeFileSync(join(copy, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  return copy;
}

/** A folder for copies, removed afterwards. @template T @param {(folder: string) => Promise<T>} body */
export async function withStage(body) {
  const folder = mkdtempSync(join(tmpdir(), "opt-stage-"));
  try {
    return await body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Packs packages as they would be published.
 * @param {string} destination an existing folder
 * @param {readonly Package[]} packages
 */
export async function pack(destination, packages = publicPackages()) {
  await withStage(async (folder) => {
    const copies = packages.map((each) => stage(each, folder));
    const options = ["pack", "--loglevel=error", "--pack-destination", destination];
    const { ok, stderr } = await start("npm", [...options, ...copies], { quiet: true });
    if (!ok) throw new Error(`[pack] npm cannot pack the packages: ${stderr}`);
  });
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
