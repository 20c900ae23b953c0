/** What the builds of native code share: the platform's name, missing tools, and CMake. Nx knows whether anything has changed. */
import { copyFileSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { run, start } from "../workspace/run.mjs";

/** This platform in package names: linux-x64-gnu, linux-arm64-musl, darwin-arm64, win32-x64. */
export function platformName() {
  if (process.platform !== "linux") return `${process.platform}-${process.arch}`;
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return `linux-${process.arch}-${report.header.glibcVersionRuntime ? "gnu" : "musl"}`;
}

/** What a build needs and this machine lacks. */
export function missingTools(compiler = process.env.CXX ?? "c++") {
  return ["cmake", compiler].filter((program) => !run(program, ["--version"], { quiet: true }).ok).join(", ");
}

/** The files of a folder and of those in it. @param {string} folder @param {string} [end] */
export function filesIn(folder, end = "") {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(end));
  return files.map(({ parentPath, name }) => join(parentPath, name)).sort();
}

/**
 * Compiles an addon.
 * @param {string} source the folder of its CMakeLists.txt
 * @param {string} out the folder to compile in
 * @param {string} target where the addon belongs
 * @param {Record<string, string>} [definitions]
 */
export async function compileAddon(source, out, target, definitions = {}) {
  const options = [
    "--directory",
    source,
    "--out",
    out,
    ..."--config Release --log-level error --parallel 2".split(" "),
  ];
  const defined = Object.entries(definitions).map(([name, value]) => `--CD${name}=${value}`);
  mkdirSync(dirname(target), { recursive: true });
  const { ok, stdout, stderr } = await start("cmake-js", ["build", ...options, ...defined], { quiet: true });
  const built = [join(out, "Release", basename(target)), join(out, basename(target))].find((file) => existsSync(file));
  if (!ok || built === undefined) throw new Error(`[native] ${source} does not compile:\n${stdout}${stderr}`);
  if (built !== target) copyFileSync(built, target);
}

/** Writes the kernels of rules. @param {string} name the package @param {string} folder */
export function generateKernels(name, folder) {
  const generator = `packages/${name}/src/generate/main.ts`;
  const { ok, stderr } = run("tsx", ["--conditions=@opt/source", generator, folder], { quiet: true });
  if (!ok) throw new Error(`[native] the rule kernels of ${name} cannot be written: ${stderr}`);
}

/**
 * Runs tests of the native kernels with another binary than the platform's: those that the command line names, or `suites`.
 * @param {string} binary
 * @param {readonly string[]} suites
 * @param {Record<string, string>} env
 * @param {readonly string[]} options of Node
 */
export function testBinary(binary, suites, env, options = []) {
  const named = process.argv.slice(2);
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "tools/test/vitest.config.ts"];
  const args = [...options, ...vitest, "--testTimeout=600000", ...(named.length > 0 ? named : suites)];
  return run(process.execPath, args, { env: { OPT_CPU_BINARY: binary, ...env } }).ok;
}
