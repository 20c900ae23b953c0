/**
 * The packages that hold one platform's binaries (native/<device>/npm/<platform>). They are no workspaces, because npm refuses
 * workspaces made for other platforms. `sync` gives them the version of the package that needs them, `publish` publishes what npm lacks.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./run.mjs";

const devices = [
  { name: "cpu", binaries: ["opt_cpu.node"] },
  { name: "cuda", binaries: ["opt_cuda.node", "kernels/rules.fatbin"] },
].map(({ name, binaries }) => {
  const npm = join(root, "native", name, "npm");
  const folders = readdirSync(npm).map((platform) => join(npm, platform));
  return { folders, binaries, consumer: join(root, `packages/kernels-${name}/package.json`) };
});
const read = (/** @type {string} */ path) => JSON.parse(readFileSync(path, "utf8"));
const write = (/** @type {string} */ path, /** @type {object} */ json) =>
  writeFileSync(path, `${JSON.stringify(json, null, 2)}\n`);

function sync() {
  for (const { consumer, folders } of devices) {
    const manifest = read(consumer);
    const { version } = manifest;
    for (const folder of folders) {
      const path = join(folder, "package.json");
      const platform = read(path);
      write(path, { ...platform, version });
      manifest.optionalDependencies[platform.name] = version;
    }
    write(consumer, manifest);
  }
}

function publish() {
  for (const { folders, binaries } of devices) {
    for (const folder of folders) {
      const { name, version } = read(join(folder, "package.json"));
      if (run("npm", ["view", `${name}@${version}`, "version"], { quiet: true }).stdout.trim() === version) continue;
      if (!binaries.every((file) => existsSync(join(folder, file))))
        throw new Error(`[publish] ${name} lacks ${binaries.join(" or ")}: build it on its platform.`);
      if (!run("npm", ["publish", "--access", "public"], { cwd: folder }).ok)
        throw new Error(`[publish] ${name} failed.`);
    }
  }
}

const commands = { sync, publish };
const command = commands[/** @type {keyof typeof commands} */ (process.argv[2] ?? "")];
if (command === undefined) throw new Error("Say what to do: platform-packages.mjs sync | publish.");
command();
