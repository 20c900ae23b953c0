/**
 * The packages that hold one platform's binaries (native/<device>/npm/<platform>). They are no workspaces, because npm rejects
 * workspaces made for other platforms. Each has the version of the package that needs it.
 *
 * `node tools/release/platforms.mjs` says for the release workflow what is to be done.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, start } from "../workspace/run.mjs";

const devices = [
  { name: "cpu", consumer: "kernels-cpu", binaries: ["opt_cpu.node"] },
  { name: "cuda", consumer: "kernels-cuda", binaries: ["opt_cuda.node", "kernels/rules.fatbin"] },
  { name: "mpi", consumer: "collectives-mpi", binaries: ["opt_mpi.node"] },
].map((device) => {
  const npm = join(root, "native", device.name, "npm");
  const folders = readdirSync(npm).map((platform) => join(npm, platform));
  return { ...device, folders, consumer: join(root, "packages", device.consumer, "package.json") };
});

const read = (/** @type {string} */ path) => JSON.parse(readFileSync(path, "utf8"));
const write = (/** @type {string} */ path, /** @type {object} */ json) =>
  writeFileSync(path, `${JSON.stringify(json, null, 2)}\n`);

/** Gives every platform package the version of its consumer. */
export function versionPlatforms() {
  for (const { consumer, folders } of devices) {
    const manifest = read(consumer);
    for (const folder of folders) {
      const path = join(folder, "package.json");
      const platform = { ...read(path), version: manifest.version };
      write(path, platform);
      manifest.optionalDependencies[platform.name] = manifest.version;
    }
    write(consumer, manifest);
  }
}

/** @param {string} name @param {string} version */
export async function isPublished(name, version) {
  const { ok, stdout } = await start("npm", ["view", `${name}@${version}`, "version"], { quiet: true });
  return ok && stdout.trim() === version;
}

/**
 * Every platform package, and of its binaries those that were not built.
 * @returns {(import("../workspace/packages.mjs").Package & { missing: string[] })[]}
 */
export function platformPackages() {
  return devices.flatMap(({ folders, binaries }) =>
    folders.map((folder) => ({
      ...read(join(folder, "package.json")),
      folder,
      missing: binaries.filter((file) => !existsSync(join(folder, file))),
    })),
  );
}

/** Whether changesets wait; if not, whether binaries of these versions are still to be built. */
async function needed() {
  const waiting = readdirSync(join(root, ".changeset")).some((name) => name.endsWith(".md"));
  const packages = waiting ? [] : platformPackages();
  const published = await Promise.all(packages.map(({ name, version }) => isPublished(name, version)));
  return `waiting=${waiting}\nnative=${published.includes(false)}`;
}

if (process.argv[1] === import.meta.filename) console.log(await needed());
