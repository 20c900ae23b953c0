/** `@opt/collectives-mpi`: importing it makes the engine "mpi" known to `connect` of `@opt/parallel`. */
import { check } from "@opt/core";
import { environmentVariable } from "@opt/core/backend";
import { type Engine, registerEngine } from "@opt/parallel";
import { launcher } from "./launcher";
import { threadsOf } from "./threads";

const COMMAND = "mpirun -n 4 node train.js";

/**
 * The engine that `connect` takes where `mpirun` or `srun` started this process. Opened once in a process; it ends with it.
 *
 * @param timeout milliseconds to wait for all ranks to begin: at most, and by default, 120,000
 * @throws OptError DEVICE_UNAVAILABLE saying what to install or to type; UNSUPPORTED in worker threads
 */
export async function openMpi(timeout?: number): Promise<Engine> {
  check(
    launcher,
    "DEVICE_UNAVAILABLE",
    "mpi",
    () => "no launcher of MPI started this process.",
    `Run it with: ${COMMAND}.`,
  );
  // Its code is loaded where a launcher started this process, and nowhere else.
  return (await import("./engine")).open(launcher, timeout);
}

const threads = launcher && threadsOf(environmentVariable);
if (threads !== undefined) process.env.OPT_NUM_THREADS = String(threads); // cpu and wasm read it

registerEngine({ name: "mpi", rank: 20, command: COMMAND, isPresent: () => launcher !== undefined, open: openMpi });
