/**
 * Builds the native CPU kernels into native/cpu/npm/<platform>, where @opt/kernels-cpu finds them.
 * Does nothing when nothing changed; says what is missing when it cannot build.
 */
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { root, run } from "./run.mjs";

const source = join(root, "native/cpu");

/** The name of this platform in package names: linux-x64-gnu, linux-arm64-musl, darwin-arm64, win32-x64. */
export function platformName() {
  if (process.platform !== "linux") return `${process.platform}-${process.arch}`;
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return `linux-${process.arch}-${report.header.glibcVersionRuntime ? "gnu" : "musl"}`;
}

/** What a build needs and this machine lacks. */
function missingTools() {
  const lacks = (/** @type {string} */ program) => !run(program, ["--version"], { quiet: true }).ok;
  const compiler = process.env.CXX ?? "c++";
  const eigen = ["/usr/include", "/usr/local/include", "/opt/homebrew/include"].some((folder) =>
    existsSync(join(folder, "eigen3/Eigen/Core")),
  );
  return [
    ...(lacks("cmake") ? ["cmake"] : []),
    ...(lacks(compiler) ? [`a C++ compiler (${compiler})`] : []),
    ...(eigen || process.env.OPT_EIGEN ? [] : ["Eigen 3"]),
  ];
}

/** Fingerprint of everything that decides what the binary is. @param {string} generated @param {boolean} sanitize */
function fingerprint(generated, sanitize) {
  const hash = createHash("sha256").update(`${process.version.split(".")[0]} ${platformName()} ${sanitize}`);
  const files = [source, join(source, "src"), join(source, "src/kernels"), generated].flatMap((folder) =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(folder, entry.name)),
  );
  for (const file of files.sort()) hash.update(file).update(readFileSync(file));
  return hash.digest("hex");
}

/**
 * @param {{ sanitize?: boolean }} [options] sanitize: with AddressSanitizer and UBSan, into a folder of its own
 * @returns {{ binary?: string, fresh?: boolean, skipped?: string }} where the binary lies and whether it was built now, or why there is none
 */
export function buildNative({ sanitize = false } = {}) {
  const missing = missingTools();
  if (missing.length > 0) return { skipped: `${missing.join(", ")} missing` };
  const build = join(source, "build", sanitize ? "sanitize" : "release");
  const generated = join(source, "build", "generated");
  const generator = join(root, "packages/kernels-cpu/src/generate/main.ts");
  const wrote = run("tsx", ["--conditions=@opt/source", generator, generated], { quiet: true });
  if (!wrote.ok) throw new Error(`[build-native] the rule kernels cannot be written: ${wrote.stderr}`);

  const folder = sanitize ? build : join(source, "npm", platformName());
  const binary = join(folder, "opt_cpu.node");
  const stamp = join(build, "fingerprint");
  const print = fingerprint(generated, sanitize);
  if (existsSync(binary) && existsSync(stamp) && readFileSync(stamp, "utf8") === print) return { binary };

  const definitions = {
    OPT_GENERATED: generated,
    OPT_SANITIZE: sanitize ? "ON" : "OFF",
    ...(process.env.OPT_EIGEN ? { EIGEN_INCLUDE: process.env.OPT_EIGEN } : {}),
  };
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
  mkdirSync(folder, { recursive: true });
  const output = [join(build, "opt_cpu.node"), join(build, "Release", "opt_cpu.node")].find((file) => existsSync(file));
  if (output === undefined) throw new Error(`[build-native] the build left no opt_cpu.node in ${build}.`);
  if (output !== binary) copyFileSync(output, binary);
  writeFileSync(stamp, print);
  return { binary, fresh: true };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({ options: { sanitize: { type: "boolean", default: false } } });
  const { binary, skipped, fresh } = buildNative(values);
  if (skipped) console.log(`build-native: skipped, ${skipped}; the cpu device will not open`);
  else if (fresh) console.log(`build-native: built ${binary}`);
}
