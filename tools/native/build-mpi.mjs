/**
 * Builds @opt/collectives-mpi's addon into native/mpi/npm/<platform>: any C++ compiler does, and no MPI is needed.
 * Does nothing when nothing changed; says what is missing when it cannot build.
 */
import { join } from "node:path";
import { root } from "../workspace/run.mjs";
import { cached, compileAddon, filesIn, fingerprint, missingTools, platformName } from "./native.mjs";

const source = join(root, "native/mpi");
const build = join(source, "build");
const binary = join(source, "npm", platformName(), "opt_mpi.node");
const print = fingerprint(platformName(), [join(source, "CMakeLists.txt"), ...filesIn(join(source, "src"))]);
const missing = missingTools();

if (process.platform === "win32" || missing !== "")
  console.log(`build-mpi: skipped, ${missing || "not on Windows"}; the engine "mpi" will not open`);
else if (await cached(binary, join(build, "fingerprint"), print, () => compileAddon(source, build, binary)))
  console.log(`build-mpi: built ${binary}`);
