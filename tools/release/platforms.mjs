/**
 * The packages that hold one platform's binaries (native/<device>/npm/<platform>). They are no workspaces, because npm refuses
 * workspaces made for other platforms. They get a new version only when what their binaries are made of has changed.
 *
 * `sync` gives them the version of the package that needs them, `needed` says whether they must be built before a release, `place` takes
 * the binaries of a workflow, `publish` publishes what npm lacks. A platform that could not be built keeps its last binary if that still fits, else it is left out.
 */
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { root, run, start } from "../run.mjs";
import { pendingChangesets } from "./changesets.mjs";
import { compare, parse } from "./semver.mjs";

/** `door`: the sources that decide how JavaScript speaks to the binary. `artifacts`: the workflow's, and where each lies in the package. */
export const devices = [
  {
    name: "cpu",
    consumer: "kernels-cpu",
    binaries: ["opt_cpu.node"],
    door: ["src/addon.cc", "src/kernels/command.h", "../../packages/kernels-cpu/src/commands.ts"],
    artifacts: (/** @type {string} */ platform) => [[`cpu-${platform}`, "."]],
  },
  {
    name: "cuda",
    consumer: "kernels-cuda",
    binaries: ["opt_cuda.node", "kernels/rules.fatbin"],
    door: ["src/addon.cc", "src/call.h", "src/tables.h", "kernels/elements.cuh"],
    artifacts: () => [
      ["cuda-addon", "."],
      ["cuda-kernels", "kernels"],
    ],
  },
  {
    name: "mpi",
    consumer: "collectives-mpi",
    binaries: ["opt_mpi.node"],
    door: ["src/addon.cc", "src/transport.h"],
    artifacts: (/** @type {string} */ platform) => [[`mpi-${platform}`, "."]],
  },
].map((device) => {
  const source = join(root, "native", device.name);
  const folders = readdirSync(join(source, "npm")).map((platform) => join(source, "npm", platform));
  return { ...device, source, folders, consumer: join(root, "packages", device.consumer, "package.json") };
});

/** @typedef {typeof devices[number]} Device */

const read = (/** @type {string} */ path) => JSON.parse(readFileSync(path, "utf8"));
const write = (/** @type {string} */ path, /** @type {object} */ json) =>
  writeFileSync(path, `${JSON.stringify(json, null, 2)}\n`);

/** @param {string} base @param {readonly string[]} files */
function hashOf(base, files) {
  const hash = createHash("sha256");
  for (const file of [...files].sort()) hash.update(relative(base, file)).update(readFileSync(file));
  return hash.digest("hex").slice(0, 16);
}

/** The files under a folder. @param {string} folder @returns {string[]} */
function filesUnder(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(path) : [path];
  });
}

/** What a device's binaries are made of, and what JavaScript must know to speak to them. @param {Device} device */
function fingerprints({ name, consumer, source, door }) {
  const generated = mkdtempSync(join(tmpdir(), "opt-generated-"));
  try {
    const generator = join(dirname(consumer), "src/generate/main.ts");
    const released = join(root, "native/rules/released.json");
    const generate = ["--conditions=@opt/source", generator, generated, released];
    const wrote = existsSync(generator) ? run("tsx", generate, { quiet: true }) : { ok: true, stderr: "" };
    if (!wrote.ok) throw new Error(`[platforms] the kernels of ${name} cannot be written: ${wrote.stderr}`);
    const sources = ["src", "kernels"].flatMap((folder) => filesUnder(join(source, folder)));
    const inputs =
      hashOf(source, [...sources, join(source, "CMakeLists.txt")]) + hashOf(generated, filesUnder(generated));
    return {
      inputs,
      door: hashOf(
        source,
        door.map((file) => join(source, file)),
      ),
    };
  } finally {
    rmSync(generated, { recursive: true, force: true });
  }
}

export function sync() {
  for (const device of devices) {
    const manifest = read(device.consumer);
    const now = fingerprints(device);
    for (const folder of device.folders) {
      const path = join(folder, "package.json");
      const platform = read(path);
      if (platform.opt?.inputs !== now.inputs) {
        if (platform.opt && platform.version === manifest.version)
          throw new Error(`[sync] native/${device.name} has changed: ${manifest.name} needs a changeset.`);
        platform.version = manifest.version;
        write(path, { ...platform, opt: now });
      }
      manifest.optionalDependencies[platform.name] = platform.version;
    }
    write(device.consumer, manifest);
  }
}

/** @param {string} name @param {string} field */
async function onRegistry(name, field) {
  const { ok, stdout } = await start("npm", ["view", name, field, "--json"], { quiet: true });
  return ok && stdout.trim() !== "" ? JSON.parse(stdout) : undefined;
}

/** @param {string} name @param {string} version */
export const isPublished = async (name, version) => (await onRegistry(`${name}@${version}`, "version")) === version;

/** The newest binary on npm that this JavaScript can speak to. @param {string} name @param {string} door */
async function lastThatFits(name, door) {
  const versions = /** @type {string[]} */ ([(await onRegistry(name, "versions")) ?? []].flat());
  for (const version of versions.sort((a, b) => compare(parse(b), parse(a)))) {
    if ((await onRegistry(`${name}@${version}`, "opt.door")) === door) return version;
  }
  return undefined;
}

/** One platform's package. @param {Device} device @param {string} folder */
async function publishPlatform({ binaries, consumer }, folder) {
  const { name, version, opt } = read(join(folder, "package.json"));
  if (await isPublished(name, version)) return;
  if (binaries.every((file) => existsSync(join(folder, file)))) {
    if (!(await start("npm", ["publish", "--access", "public"], { cwd: folder })).ok)
      throw new Error(`[publish] ${name} failed.`);
    return;
  }
  const previous = await lastThatFits(name, opt.door);
  const manifest = read(consumer);
  if (previous === undefined) delete manifest.optionalDependencies[name];
  else manifest.optionalDependencies[name] = previous;
  write(consumer, manifest);
  console.log(`publish: ${name}@${version} was not built; ${previous ? `${previous} serves on` : "left out"}`);
}

/** All at once: each waits for npm most of the time. */
export async function publish() {
  await Promise.all(devices.flatMap((device) => device.folders.map((folder) => publishPlatform(device, folder))));
}

/** For a workflow: whether changesets wait to be versioned; if not, whether binaries of these versions are still to be built. */
export async function needed() {
  const waiting = pendingChangesets().length > 0;
  const manifests = devices.flatMap(({ folders }) => folders.map((folder) => read(join(folder, "package.json"))));
  const published = await Promise.all(waiting ? [] : manifests.map(({ name, version }) => isPublished(name, version)));
  console.log(`waiting=${waiting}\nnative=${published.includes(false)}`);
}

/** Puts a workflow's artifacts where the packages have them. @param {string} artifacts a folder with one for each artifact */
export function place(artifacts) {
  for (const { artifacts: parts, folders } of devices) {
    for (const folder of folders) {
      for (const [artifact = "", within = ""] of parts(basename(folder))) {
        const source = join(artifacts, artifact);
        if (existsSync(source)) cpSync(source, join(folder, within), { recursive: true });
        else console.log(`place: there is no ${artifact}`);
      }
    }
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const commands = { sync, needed, publish, place: () => place(process.argv[3] ?? "") };
  const command = commands[/** @type {keyof typeof commands} */ (process.argv[2] ?? "")];
  if (command === undefined)
    throw new Error("Say what to do: platforms.mjs sync | needed | place <artifacts> | publish.");
  await command();
}
