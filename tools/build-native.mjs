/**
 * Builds the native CPU kernels into native/cpu/npm/<platform>, where @opt/kernels-cpu finds them.
 * Does nothing when nothing changed; says what is missing when it cannot build.
 */
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, run } from "./run.mjs";

const source = join(root, "native/cpu");

/** The name of this platform in package names: linux-x64-gnu, linux-arm64-musl, darwin-arm64, win32-x64. */
export function platformName() {
  if (process.platform !== "linux") return `${process.platform}-${process.arch}`;
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return `linux-${process.arch}-${report.header.glibcVersionRuntime ? "gnu" : "musl"}`;
}

/**
 * What the variants of the build set in CMake. Each compiles in a folder of its own: cmake-js does not configure one twice. Only the
 * release lies in the platform's package, so that a binary for one processor is never tested or published in the place of the whole.
 * @type {Record<"release" | "thisProcessor" | "sanitize" | "neon", Record<string, string>>}
 */
const variants = {
  release: {},
  thisProcessor: { OPT_ONLY_BEST: "ON" },
  sanitize: { OPT_SANITIZE: "ON" },
  neon: { CMAKE_SYSTEM_NAME: "Linux", CMAKE_SYSTEM_PROCESSOR: "aarch64", CMAKE_CXX_COMPILER: "aarch64-linux-gnu-g++" },
};

/** @typedef {keyof typeof variants} Variant */

/** What a build needs and this machine lacks. @param {Variant} variant */
function missingTools(variant) {
  const lacks = (/** @type {string} */ program) => !run(program, ["--version"], { quiet: true }).ok;
  const compiler = variants[variant].CMAKE_CXX_COMPILER ?? process.env.CXX ?? "c++";
  return [...(lacks("cmake") ? ["cmake"] : []), ...(lacks(compiler) ? [`a C++ compiler (${compiler})`] : [])];
}

/** Fingerprint of everything that decides what the binary is. @param {string} generated @param {Variant} variant */
function fingerprint(generated, variant) {
  const hash = createHash("sha256").update(`${process.version.split(".")[0]} ${platformName()} ${variant}`);
  const entries = [join(source, "src"), generated].flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()),
  );
  const files = entries.map(({ parentPath, name }) => join(parentPath, name));
  files.push(join(source, "CMakeLists.txt"), join(source, "package.json"));
  for (const file of files.sort()) hash.update(file).update(readFileSync(file));
  return hash.digest("hex");
}

/** Where a variant is compiled, its binary, and the fingerprint of what that was built from. @param {Variant} variant */
function placesOf(variant) {
  const processor = (cpus()[0]?.model ?? "unknown").replace(/\W+/g, "-");
  const build = join(source, "build", variant === "thisProcessor" ? `processor-${processor}` : variant);
  const folder = variant === "release" ? join(source, "npm", platformName()) : build;
  return { build, binary: join(folder, "opt_cpu.node"), stamp: join(build, "fingerprint") };
}

/**
 * @param {Variant} [variant] thisProcessor: with its best instruction set alone, unless the whole is there; sanitize: with
 * AddressSanitizer and UBSan; neon: for arm64 Linux
 * @returns {{ binary?: string, fresh?: boolean, skipped?: string }} where the binary is and whether it was built now, or why no binary was built
 */
export function buildNative(variant = "release") {
  const missing = missingTools(variant);
  if (missing.length > 0) return { skipped: `${missing.join(", ")} missing` };
  const generated = join(source, "build", "generated");
  const generator = join(root, "packages/kernels-cpu/src/generate/main.ts");
  const wrote = run("tsx", ["--conditions=@opt/source", generator, generated], { quiet: true });
  if (!wrote.ok) throw new Error(`[build-native] the rule kernels cannot be written: ${wrote.stderr}`);

  for (const enough of variant === "thisProcessor" ? [/** @type {const} */ ("release"), variant] : [variant]) {
    const { binary, stamp } = placesOf(enough);
    const isBuilt = existsSync(binary) && existsSync(stamp);
    if (isBuilt && readFileSync(stamp, "utf8") === fingerprint(generated, enough)) return { binary };
  }
  const { build, binary, stamp } = placesOf(variant);
  const definitions = { OPT_GENERATED: generated, ...variants[variant] };
  const built = run(
    "cmake-js",
    [
      "build",
      ...["--directory", source, "--out", build, "--config", "Release", "--log-level", "error", "--parallel", "2"],
      ...Object.entries(definitions).map(([name, value]) => `--CD${name}=${value}`),
    ],
    { quiet: true },
  );
  if (!built.ok) throw new Error(`[build-native] the kernels do not compile:\n${built.stdout}${built.stderr}`);
  const output = [join(build, "Release", "opt_cpu.node"), join(build, "opt_cpu.node")].find((file) => existsSync(file));
  if (output === undefined) throw new Error(`[build-native] the build left no opt_cpu.node in ${build}.`);
  mkdirSync(dirname(binary), { recursive: true });
  if (output !== binary) copyFileSync(output, binary);
  writeFileSync(stamp, fingerprint(generated, variant));
  return { binary, fresh: true };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { binary, skipped, fresh } = buildNative();
  if (skipped) console.log(`build-native: skipped, ${skipped}; the cpu device will not open`);
  else if (fresh) console.log(`build-native: built ${binary}`);
}
