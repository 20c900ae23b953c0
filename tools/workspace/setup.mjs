/**
 * Sets a clone up: npm packages always, system tools where it can. Does nothing when nothing is to do.
 * `node tools/workspace/setup.mjs packages [workspace]` stops after the npm packages, of one workspace or of all; `tools` before the
 * native kernels are built.
 */
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { nativeBinary } from "../native/build-cpu.mjs";
import { nx } from "./nx/run.mjs";
import { root, start } from "./run.mjs";

const BUILDING = "building native kernels";
const MPI = "tests of ranks under mpirun";
const vulkan = ["x86_64", "aarch64"].map((cpu) => `/usr/lib/${cpu}-linux-gnu/libvulkan.so.1`);
// packages/testkit/src/software-vulkan.ts looks there, too.
const swiftshader = ["/usr/lib/chromium", "/usr/lib/chromium-browser", "/opt/google/chrome"].map(
  (folder) => `${folder}/vk_swiftshader_icd.json`,
);

/** What npm cannot bring. Opt works without each of them, short of what it is needed for. */
const systemTools = [
  { tool: "cmake", debian: "cmake", neededFor: BUILDING, present: () => onPath("cmake") },
  { tool: "g++", debian: "g++", neededFor: BUILDING, present: () => onPath("g++") },
  {
    tool: "Chromium",
    debian: "chromium",
    neededFor: "tests in a browser",
    present: () => onPath("chromium") || onPath("google-chrome"),
  },
  {
    tool: "the Vulkan loader",
    debian: "libvulkan1",
    neededFor: "WebGPU in Node",
    present: () => vulkan.some((file) => existsSync(file)),
  },
  {
    tool: "a Vulkan driver",
    debian: "chromium",
    neededFor: "WebGPU in Node, in software",
    present: () => swiftshader.some((file) => existsSync(file)),
  },
  { tool: "Open MPI", debian: "openmpi-bin", neededFor: MPI, present: () => onPath("ompi_info") },
  { tool: "MPICH", debian: "mpich", neededFor: MPI, present: () => onPath("mpichversion") },
];

/** @param {string} program */
function onPath(program) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** What the lock file asks for, and node_modules lacks or has in another version. */
function stalePackages() {
  const read = (/** @type {string} */ path) => JSON.parse(readFileSync(join(root, path), "utf8")).packages;
  const locked = read("package-lock.json");
  const hidden = "node_modules/.package-lock.json";
  const installed = existsSync(join(root, hidden)) ? read(hidden) : {};
  // npm leaves out links to another platform's binaries: what they point at is optional.
  const isOptional = (/** @type {string} */ path) =>
    locked[path].optional || locked[path].devOptional || (locked[path].link && locked[locked[path].resolved]?.optional);
  return Object.keys(locked).filter(
    (path) => path.includes("node_modules/") && !isOptional(path) && installed[path]?.version !== locked[path].version,
  );
}

/** @param {string} [workspace] only what this one needs */
export async function installNpmPackages(workspace) {
  if (stalePackages().length === 0) return;
  console.log(`set-up: npm packages${workspace ? ` of ${workspace}` : ""}`);
  // Not `npm ci`: it begins with an empty node_modules, also where one package is missing.
  const options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const { ok } = await start("npm", ["install", ...options, ...(workspace ? ["--workspace", workspace] : [])]);
  if (!ok) throw new Error("[set-up] npm could not install its packages. See its message above.");
}

const mayInstall = () => process.getuid?.() === 0 && onPath("apt-get");

/** The tools that this machine lacks and set-up may not install. */
export function excusedTools() {
  return mayInstall() ? [] : systemTools.filter(({ present }) => !present()).map(({ tool }) => tool);
}

async function installSystemTools(tools = systemTools) {
  let missing = tools.filter(({ present }) => !present());
  if (missing.length > 0 && mayInstall()) {
    await installDebianPackages([...new Set(missing.map(({ debian }) => debian))]);
    missing = missing.filter(({ present }) => !present());
  }
  for (const { tool, debian, neededFor } of missing) {
    console.log(`set-up: ${tool} is missing (Debian package ${debian}), needed for ${neededFor}; going on without it`);
  }
}

/** One by one where not all can be had. @param {string[]} names */
async function installDebianPackages(names) {
  console.log(`set-up: installing ${names.join(", ")} with apt-get`);
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  const patience = ["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20"];
  await start("apt-get", ["update", "-q", ...patience], { quiet: true, env, minutes: 2 });
  const install = ["install", "-y", "-q", "--no-install-recommends", ...patience];
  if ((await start("apt-get", [...install, ...names], { quiet: true, env, minutes: 8 })).ok) return;
  for (const name of names) await start("apt-get", [...install, name], { quiet: true, env, minutes: 2 });
}

/** What npm brings and what the system does, which do not wait for each other. */
export async function install() {
  await Promise.all([installNpmPackages(), installSystemTools()]);
}

/**
 * What the main job needs: its npm packages, and the native device for this processor. What only tests use is not touched.
 * @returns {Promise<string | undefined>} the native device's binary
 */
export async function setupToRun() {
  await Promise.all([
    installNpmPackages("e2e/mnist"),
    installSystemTools(systemTools.filter((each) => each.neededFor === BUILDING)),
  ]);
  console.log("set-up: native kernels for this processor");
  return nativeBinary("processor");
}

if (process.argv[1] === import.meta.filename) {
  const [, , what, workspace] = process.argv;
  await (what === "packages" ? installNpmPackages(workspace) : install());
  if (what === undefined) await nx(["run-many", "--targets", "native"]);
}
