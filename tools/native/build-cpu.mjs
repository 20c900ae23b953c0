/**
 * The target `native` of native-cpu: compiles the kernels into native/cpu/npm/<platform>, where @opt/kernels-cpu finds them.
 * `--generate`: the target `generate`, which writes the kernels of rules. Says what is missing when it cannot build.
 */
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { nx } from "../workspace/nx/run.mjs";
import { root } from "../workspace/run.mjs";
import { compileAddon, generateKernels, missingTools, platformName } from "./native.mjs";

const source = join(root, "native/cpu");
const generated = join(source, "build/generated");

/**
 * What the variants of the build set in CMake. Each compiles in a folder of its own: cmake-js does not configure one twice. Only the
 * release is in the platform's package, so that a binary for one processor is never tested or published in the place of the whole.
 */
const variants = {
  release: {},
  /** With this processor's best instruction set alone. */
  processor: { OPT_ONLY_BEST: "ON" },
  /** With AddressSanitizer and UBSan. */
  sanitize: { OPT_SANITIZE: "ON" },
  /** For arm64 Linux. */
  neon: { CMAKE_SYSTEM_NAME: "Linux", CMAKE_SYSTEM_PROCESSOR: "aarch64", CMAKE_CXX_COMPILER: "aarch64-linux-gnu-g++" },
};

/** @typedef {keyof typeof variants} Variant */

/** @param {Variant} variant */
const binaryOf = (variant) => {
  const folder = variant === "release" ? join("npm", platformName()) : join("build", variant);
  return join(source, folder, "opt_cpu.node");
};

/**
 * Builds a variant where it has changed, by Nx.
 * @param {Variant} variant
 * @returns {Promise<string | undefined>} the binary, or undefined where tools are missing
 */
export async function nativeBinary(variant) {
  const configuration = variant === "release" ? [] : ["--configuration", variant];
  await nx(["native", "native-cpu", ...configuration]);
  return existsSync(binaryOf(variant)) ? binaryOf(variant) : undefined;
}

/** @param {Variant} variant */
async function build(variant) {
  const { CMAKE_CXX_COMPILER: compiler } = /** @type {Record<string, string>} */ (variants[variant]);
  const missing = missingTools(compiler);
  if (missing !== "") return console.log(`build-cpu: skipped, ${missing} missing; the cpu device will not open`);
  const folder = join(source, "build", variant);
  mkdirSync(dirname(folder), { recursive: true });
  await compileAddon(source, folder, binaryOf(variant), { OPT_GENERATED: generated, ...variants[variant] });
}

if (process.argv[1] === import.meta.filename) {
  const options = /** @type {const} */ ({
    generate: { type: "boolean", default: false },
    variant: { type: "string", default: "release" },
    binary: { type: "string" }, // where it is, for Nx
  });
  const { generate, variant } = parseArgs({ options }).values;
  if (generate) generateKernels("kernels-cpu", generated);
  else await build(/** @type {Variant} */ (variant));
}
