/** How a program becomes a rank: whatever started it says which. */
import { check, checkOptions, show } from "@opt/core";
import { environmentVariable } from "@opt/core/backend";
import { Communicator, WORLD } from "./communicator/communicator";
import { FIRST_SPLIT, Group } from "./communicator/group";
import { engines } from "./engine/registry";

export interface ConnectOptions {
  /** "mpi", "local" or "single"; by default that of the launcher which started this process. */
  readonly engine?: string;
  /** Milliseconds after which a rank that waits for another one gives up, and names it. Default 300,000. */
  readonly timeout?: number;
}

/** One communicator of all ranks per engine, whichever copy of this package asks: a process is a rank once. */
const shared = globalThis as { [key: symbol]: Map<string, Communicator> | undefined };
const key = Symbol.for("@opt/parallel.worlds");
shared[key] ??= new Map();
const worlds: Map<string, Communicator> = shared[key];

/**
 * The communicator of all ranks: MPI's where `mpirun` or `srun` started this process and `@opt/collectives-mpi` is imported, the local
 * one under `npx opt-run -n 4 train.js`, else of one rank. Who asks again, with no other timeout, gets the same one.
 *
 * @throws OptError BAD_ARGUMENT; DEVICE_UNAVAILABLE if no launcher of that engine started this process, or `mpirun` did and its engine
 * is not imported
 * @example
 * const communicator = await connect();
 * console.log(communicator.rank, communicator.size); // 0 1
 * await communicator.close();
 */
export async function connect(options: ConnectOptions = {}): Promise<Communicator> {
  checkOptions("connect", options, { engine: "string", timeout: "number" });
  const { engine: name, timeout = 300_000 } = options;
  // Timers of JavaScript count to 2^31.
  const isTime = timeout > 0 && timeout < 2 ** 31;
  check(isTime, "BAD_ARGUMENT", "connect", () => `timeout must be in (0, 2^31) milliseconds, got ${show(timeout)}.`);
  const registration = engines.choose(name);
  if (name === undefined && registration.name === "single") checkNotOfMpi();
  const known = worlds.get(registration.name);
  if (known !== undefined && !known.group.world.isClosed) {
    const { timeout: first } = known.group.world;
    const isSame = options.timeout === undefined || options.timeout === first;
    check(
      isSame,
      "BAD_ARGUMENT",
      "connect",
      () => `this process is connected with a timeout of ${first} milliseconds, got ${timeout}.`,
      "Give it to the first connect().",
    );
    return known;
  }
  check(
    known === undefined || known.size === 1,
    "DISPOSED",
    "connect",
    () => "this process was a rank of the job, and closed its communicator.",
    "Close it at the end of the program.",
  );
  const engine = await engines.open(registration, timeout);
  const members = Array.from({ length: engine.size }, (_, rank) => rank);
  const world = { engine, timeout, nextGroup: FIRST_SPLIT, nextMeshGroup: 1, isClosed: false };
  const communicator = new Communicator(new Group(world, WORLD, members, 0));
  worlds.set(registration.name, communicator);
  return communicator;
}

/** Launchers of MPI tell their ranks how many there are. Without its engine each would train alone, and write the same files. */
function checkNotOfMpi(): void {
  const size = Number(environmentVariable("OMPI_COMM_WORLD_SIZE") ?? environmentVariable("PMI_SIZE") ?? 1);
  // Programs that a rank starts inherit the variables, and what says that they are no ranks.
  const isChild = environmentVariable("OPT_MPI_RANK_PROCESS") !== undefined;
  check(
    size <= 1 || isChild || engines.has("mpi"),
    "DEVICE_UNAVAILABLE",
    "connect",
    () => `a launcher of MPI started ${size} ranks, and no engine of MPI is imported.`,
    'Import "@opt/collectives-mpi" first, or connect({ engine: "single" }) where each works alone.',
  );
}
