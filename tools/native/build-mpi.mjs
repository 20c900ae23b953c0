/**
 * The target `native` of native-mpi: compiles @opt/collectives-mpi's addon into native/mpi/npm/<platform>. Any C++ compiler does, and no
 * MPI is needed. Says what is missing when it cannot build.
 */
import { join } from "node:path";
import { root } from "../workspace/run.mjs";
import { compileAddon, missingTools, platformName } from "./native.mjs";

const source = join(root, "native/mpi");
const missing = missingTools();

if (process.platform === "win32" || missing !== "")
  console.log(
    `build-mpi: skipped, ${missing ? `${missing} missing` : "not on Windows"}; the engine "mpi" will not open`,
  );
else await compileAddon(source, join(source, "build"), join(source, "npm", platformName(), "opt_mpi.node"));
