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
/** Kernels are built for these, too: see tools/release/rules.ts. */
const releasedRules = join(root, "native/rules/released.json");

/** The name of this platform in package names: linux-x64-gnu, linux-arm64-musl, darwin-arm64, win32-x64. */
export function platformName() {
  if (process.platform !== "linux") return `${process.platform}-${process.arch}`;
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return `linux-${process.arch}-${report.header.glibcVersionRuntime ? "gnu" : "musl"}`;
}

/**
 * Where the variants of the build compile, and what they set in CMake. What is built for this processor alone shares its objects with
 * the release and lies outside of the platform's package: it is never published, nor tested in the place of the whole.
 * @type {Record<"release" | "thisProcessor" | "sanitize" | "neon", { folder: string, definitions: Record<string, string> }>}
 */
const variants = {
  release: { folder: "release", definitions: { OPT_ONLY_BEST: "OFF" } },
  thisProcessor: { folder: "release", definitions: { OPT_ONLY_BEST: "ON" } },
  sanitize: { folder: "sanitize", definitions: { OPT_SANITIZE: "ON" } },
  neon: {
    folder: "neon",
    definitions: {
      CMAKE_SYSTEM_NAME: "Linux",
      CMAKE_SYSTEM_PROCESSOR: "aarch64",
      CMAKE_CXX_COMPILER: "aarch64-linux-gnu-g++",
    },
  },
};

/** @typedef {keyof typeof variants} Variant */

/** What a build needs and this machine lacks. @param {Variant} variant */
function missingTools(variant) {
  const lacks = (/** @type {string} */ program) => !run(program, ["--version"], { quiet: true }).ok;
  const compiler = variants[variant].definitions.CMAKE_CXX_COMPILER ?? process.env.CXX ?? "c++";
  return [...(lacks("cmake") ? ["cmake"] : []), ...(lacks(compiler) ? [`a C++ compiler (${compiler})`] : [])];
}

/** Fingerprint of everything that decides what the binary is. @param {string} generated @param {Variant} variant */
function fingerprint(generated, variant) {
  const hash = createHash("sha256").update(`${process.version.split(".")[0]} ${platformName()} ${variant}`);
  if (variant === "thisProcessor") hash.update(cpus()[0]?.model ?? "");
  const files = [source, join(source, "src"), join(source, "src/kernels"), generated].flatMap((folder) =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(folder, entry.name)),
  );
  for (const file of files.sort()) hash.update(file).update(readFileSync(file));
  return hash.digest("hex");
}

/** The binary of a variant, and the fingerprint of what it was built from. @param {Variant} variant */
function placeOf(variant) {
  const own = join(source, "build", variant);
  const folder = variant === "release" ? join(source, "npm", platformName()) : own;
  return { binary: join(folder, "opt_cpu.node"), stamp: join(own, "fingerprint") };
}

/**
 * @param {Variant} [variant] thisProcessor: with its best instruction set alone, unless the whole is there; sanitize: with
 * AddressSanitizer and UBSan; neon: for arm64 Linux
 * @returns {{ binary?: string, fresh?: boolean, skipped?: string }} where the binary lies and whether it was built now, or why there is none
 */
export function buildNative(variant = "release") {
  const missing = missingTools(variant);
  if (missing.length > 0) return { skipped: `${missing.join(", ")} missing` };
  const generated = join(source, "build", "generated");
  const generator = join(root, "packages/kernels-cpu/src/generate/main.ts");
  const wrote = run("tsx", ["--conditions=@opt/source", generator, generated, releasedRules], { quiet: true });
  if (!wrote.ok) throw new Error(`[build-native] the rule kernels cannot be written: ${wrote.stderr}`);

  for (const enough of variant === "thisProcessor" ? [/** @type {const} */ ("release"), variant] : [variant]) {
    const { binary, stamp } = placeOf(enough);
    const isBuilt = existsSync(binary) && existsSync(stamp);
    if (isBuilt && readFileSync(stamp, "utf8") === fingerprint(generated, enough)) return { binary };
  }
  const build = join(source, "build", variants[variant].folder);
  const definitions = { OPT_GENERATED: generated, ...variants[variant].definitions };
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
  const { binary, stamp } = placeOf(variant);
  for (const file of [binary, stamp]) mkdirSync(dirname(file), { recursive: true });
  if (output !== binary) copyFileSync(output, binary);
  writeFileSync(stamp, fingerprint(generated, variant));
  return { binary, fresh: true };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { binary, skipped, fresh } = buildNative();
  if (skipped) console.log(`build-native: skipped, ${skipped}; the cpu device will not open`);
  else if (fresh) console.log(`build-native: built ${binary}`);
}
