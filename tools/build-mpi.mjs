/**
 * Builds @opt/collectives-mpi's addon into native/mpi/npm/<platform>: any C++ compiler does, and no MPI is needed.
 * Does nothing when nothing changed; says what is missing when it cannot build.
 */
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { platformName } from "./build-native.mjs";
import { root, run } from "./run.mjs";

const source = join(root, "native/mpi");
const build = join(source, "build");
const stamp = join(build, "fingerprint");

function fingerprint() {
  const hash = createHash("sha256").update(platformName());
  const names = readdirSync(join(source, "src")).sort();
  for (const file of ["CMakeLists.txt", ...names.map((name) => join("src", name))])
    hash.update(file).update(readFileSync(join(source, file)));
  return hash.digest("hex");
}

/** @returns {{ binary?: string, fresh?: boolean, skipped?: string }} where the binary is and whether it was built now, or why no binary was built */
export function buildMpi() {
  if (process.platform === "win32") return { skipped: "not on Windows" };
  const binary = join(source, "npm", platformName(), "opt_mpi.node");
  const print = fingerprint();
  if (existsSync(binary) && existsSync(stamp) && readFileSync(stamp, "utf8") === print) return { binary };
  const lacks = (/** @type {string} */ program) => !run(program, ["--version"], { quiet: true }).ok;
  const missing = ["cmake", process.env.CXX ?? "c++"].filter(lacks);
  if (missing.length > 0) return { skipped: `${missing.join(", ")} missing` };
  const options = ["--directory", source, "--out", build, "--config", "Release", "--log-level", "error"];
  const built = run("cmake-js", ["build", ...options], { quiet: true });
  if (!built.ok) throw new Error(`[build-mpi] the addon does not compile:\n${built.stdout}${built.stderr}`);
  const output = [join(build, "Release/opt_mpi.node"), join(build, "opt_mpi.node")].find((file) => existsSync(file));
  if (output === undefined) throw new Error(`[build-mpi] the build left no opt_mpi.node in ${build}.`);
  mkdirSync(dirname(binary), { recursive: true });
  copyFileSync(output, binary);
  writeFileSync(stamp, print);
  return { binary, fresh: true };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { binary, skipped, fresh } = buildMpi();
  if (skipped) console.log(`build-mpi: skipped, ${skipped}; the engine "mpi" will not open`);
  else if (fresh) console.log(`build-mpi: built ${binary}`);
}
