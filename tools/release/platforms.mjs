/**
 * The packages that hold one platform's binaries (native/<device>/npm/<platform>). They are no workspaces, because npm rejects
 * workspaces made for other platforms. Each has the version of the package that needs it.
 *
 * On the command line, for the release workflow: `needed` prints what is to be done, `place <artifacts>` puts built binaries in place.
 */
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, start } from "../run.mjs";
import { pendingChangesets } from "./changesets.mjs";

/** `artifacts`: the workflow's, and where each belongs in the package. */
const devices = [
  {
    name: "cpu",
    consumer: "kernels-cpu",
    binaries: ["opt_cpu.node"],
    artifacts: (/** @type {string} */ platform) => [[`cpu-${platform}`, "."]],
  },
  {
    name: "cuda",
    consumer: "kernels-cuda",
    binaries: ["opt_cuda.node", "kernels/rules.fatbin"],
    artifacts: () => [
      ["cuda-addon", "."],
      ["cuda-kernels", "kernels"],
    ],
  },
  {
    name: "mpi",
    consumer: "collectives-mpi",
    binaries: ["opt_mpi.node"],
    artifacts: (/** @type {string} */ platform) => [[`mpi-${platform}`, "."]],
  },
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

/** Every platform package: its manifest, its folder, and the binaries that were not built. */
export function platformPackages() {
  return devices.flatMap(({ folders, binaries }) =>
    folders.map((folder) => {
      const { name, version } = /** @type {{ name: string, version: string }} */ (read(join(folder, "package.json")));
      return { name, version, folder, binaries, missing: binaries.filter((file) => !existsSync(join(folder, file))) };
    }),
  );
}

/** For the workflow: whether changesets wait; if not, whether binaries of these versions are still to be built. */
async function needed() {
  const waiting = pendingChangesets().length > 0;
  const packages = waiting ? [] : platformPackages();
  const published = await Promise.all(packages.map(({ name, version }) => isPublished(name, version)));
  console.log(`waiting=${waiting}\nnative=${published.includes(false)}`);
}

/** Puts a workflow's artifacts where the packages have them. @param {string} artifacts a folder with one for each artifact */
function place(artifacts) {
  for (const { artifacts: parts, folders } of devices) {
    for (const folder of folders) {
      for (const [artifact = "", within = ""] of parts(basename(folder))) {
        const source = join(artifacts, artifact);
        if (existsSync(source)) cpSync(source, join(folder, within), { recursive: true });
      }
    }
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [, , command, folder = ""] = process.argv;
  if (command === "needed") await needed();
  else if (command === "place") place(folder);
  else throw new Error("Say what to do: platforms.mjs needed | place <artifacts>.");
}
