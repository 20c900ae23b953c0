/**
 * Builds the native CPU kernels into native/cpu/npm/<platform>, where @opt/kernels-cpu finds them.
 * Does nothing when nothing changed; says what is missing when it cannot build.
 */
import { cpus } from "node:os";
import { join } from "node:path";
import { root } from "../workspace/run.mjs";
import {
  cached,
  compileAddon,
  filesIn,
  fingerprint,
  generateKernels,
  isFresh,
  missingTools,
  platformName,
} from "./native.mjs";

const source = join(root, "native/cpu");

/**
 * What the variants of the build set in CMake. Each compiles in a folder of its own: cmake-js does not configure one twice. Only the
 * release is in the platform's package, so that a binary for one processor is never tested or published in the place of the whole.
 * @type {Record<"release" | "thisProcessor" | "sanitize" | "neon", Record<string, string>>}
 */
const variants = {
  release: {},
  thisProcessor: { OPT_ONLY_BEST: "ON" },
  sanitize: { OPT_SANITIZE: "ON" },
  neon: { CMAKE_SYSTEM_NAME: "Linux", CMAKE_SYSTEM_PROCESSOR: "aarch64", CMAKE_CXX_COMPILER: "aarch64-linux-gnu-g++" },
};

/** @typedef {keyof typeof variants} Variant */

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
 * @returns {Promise<{ binary?: string, fresh?: boolean, skipped?: string }>} where the binary is and whether it was built now, or why no binary was built
 */
export async function buildNative(variant = "release") {
  const missing = missingTools(variants[variant].CMAKE_CXX_COMPILER);
  if (missing !== "") return { skipped: `${missing} missing` };
  const generated = generateKernels("kernels-cpu", join(source, "build/generated"));
  const files = [...filesIn(join(source, "src")), ...filesIn(generated), join(source, "CMakeLists.txt")];
  const printOf = (/** @type {Variant} */ each) =>
    fingerprint(`${process.version.split(".")[0]} ${platformName()} ${each}`, files);
  const whole = placesOf("release");
  if (variant === "thisProcessor" && isFresh(whole.binary, whole.stamp, printOf("release"))) return whole;
  const { build, binary, stamp } = placesOf(variant);
  const definitions = { OPT_GENERATED: generated, ...variants[variant] };
  const fresh = await cached(binary, stamp, printOf(variant), () => compileAddon(source, build, binary, definitions));
  return { binary, fresh };
}

if (process.argv[1] === import.meta.filename) {
  const { binary, skipped, fresh } = await buildNative();
  if (skipped) console.log(`build-native: skipped, ${skipped}; the cpu device will not open`);
  else if (fresh) console.log(`build-native: built ${binary}`);
}
