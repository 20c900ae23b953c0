/** The projects of the workspace and what they depend on, from their manifests. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * `shipped` are the projects that users of this one get, `all` those that its tests need, too. Both are direct, as names of projects.
 * @typedef {{ name: string, folder: string, isPublic: boolean, reads: string[], shipped: string[], all: string[] }} Project
 */

/** The native project whose binaries a package opens. @type {Readonly<Record<string, string>>} */
export const NATIVE = {
  "@opt/kernels-cpu": "native-cpu",
  "@opt/kernels-cuda": "native-cuda",
  "@opt/collectives-mpi": "native-mpi",
};

/**
 * @param {string} root
 * @param {readonly string[]} manifests paths of package.json from the root
 * @returns {Map<string, Project>} by name
 */
export function projectsOf(root, manifests) {
  const read = manifests.map((path) => ({
    manifest: JSON.parse(readFileSync(join(root, path), "utf8")),
    folder: dirname(path),
  }));
  const names = new Set(read.map(({ manifest }) => manifest.name));
  return new Map(
    read.map(({ manifest, folder }) => {
      const { dependencies, peerDependencies, devDependencies, private: isPrivate = false, opt } = manifest;
      /** @param {object[]} kinds @returns {string[]} */
      const ours = (...kinds) => kinds.flatMap((kind) => Object.keys(kind ?? {})).filter((name) => names.has(name));
      const shipped = [...new Set(ours(dependencies, peerDependencies))];
      const all = [...new Set([...shipped, ...ours(devDependencies)])];
      const { name } = manifest;
      return [name, { name, folder, isPublic: !isPrivate, reads: opt?.reads ?? [], shipped, all }];
    }),
  );
}

/**
 * What a project needs, directly or not, by name and in order; not itself.
 * @param {Map<string, Project>} projects
 * @param {string} name
 * @param {"shipped" | "all"} kind of its own dependencies; those of others are what they ship
 */
export function neededBy(projects, name, kind) {
  const needed = new Set(projects.get(name)?.[kind]);
  // A set that grows while it is walked. Test support is used by tests alone, with all that it has.
  for (const each of needed) for (const next of projects.get(each)?.shipped ?? []) needed.add(next);
  needed.delete(name);
  return [...needed].sort();
}

/** Whether a folder has a file with this ending, at any depth. @param {string} folder @param {RegExp} end */
export const hasFile = (folder, end) =>
  existsSync(folder) &&
  readdirSync(folder, { recursive: true, encoding: "utf8" }).some(
    (path) => end.test(path) && !path.includes("node_modules"),
  );
