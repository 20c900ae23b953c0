/** The engine of `mpirun` and `srun`: messages go through the MPI library of the launcher, on a native thread that owns it. */
import { writeSync } from "node:fs";
import { inspect } from "node:util";
import { isMainThread } from "node:worker_threads";
import { check, OptError } from "@opt/core";
import type { Engine } from "@opt/parallel";
import { type Addon, ELEMENTS, FAILED, loadAddon, RECEIVE, REDUCE, REDUCTIONS, SEND } from "./addon";
import { type Launcher, TAKEN } from "./launcher";
import { openLibrary } from "./library";
import { reportDeath } from "./report-death";
import { type Transfer, UnderWay } from "./under-way";

/** Counts of MPI are ints. */
const PIECE = 2 ** 30;
/** MPI_Init waits for all ranks to begin. */
const BEGIN_WITHIN = 120_000;
/** MPI_Abort ends this process, too; where it does not, the process ends by itself after so many seconds. */
const ABORT_WITHIN = 3;
/** A launcher drops what it has not read of a rank when the job is aborted: so many milliseconds for its words. */
const UNTIL_READ = 100;
/** The number under which a program that did not close its communicator does so. */
const AT_EXIT = 0xffffffff;

const OTHER_LIBRARY = "Name the launcher's own library in OPT_MPI_LIBRARY; with srun, try --mpi=pmix or --mpi=pmi2.";

export async function open(launcher: Launcher, timeout = BEGIN_WITHIN): Promise<Engine> {
  check(
    isMainThread,
    "UNSUPPORTED",
    "mpi",
    () => "a rank is a process, got a worker thread.",
    "Connect in the main thread.",
  );
  const addon = loadAddon();
  const library = openLibrary(addon, launcher);
  const { rank: known, size: expected } = launcher;
  const isSilent = launcher.kind === "hydra" && known !== undefined && expected !== undefined;
  const goodbye = isSilent ? reportDeath(known, expected) : () => {};
  const underWay = new UnderWay(addon);
  await begin(addon, underWay, library, Math.min(timeout, BEGIN_WITHIN));
  const { rank, size, version } = addon.place();
  process.env[TAKEN] = String(process.pid);
  let isClosing = false;
  endWith(`rank ${rank} of ${size}`, addon, goodbye, () => isClosing);
  check(
    expected === undefined || expected === size,
    "DEVICE_UNAVAILABLE",
    "mpi",
    () => `the launcher started ${expected} ranks, and ${library} (${version}) knows of ${size}.`,
    OTHER_LIBRARY,
  );

  const move = (kind: "send" | "receive", peer: number, tag: number, bytes: Uint8Array): Transfer => {
    check(
      !isClosing,
      "DISPOSED",
      kind,
      () => "the engine was closed.",
      "Close the communicator at the end of the program.",
    );
    const post = (id: number) => addon.post(id, kind === "send" ? SEND : RECEIVE, peer, tag, bytes);
    return { where: kind, peer, length: bytes.byteLength, post };
  };
  return {
    name: "mpi",
    rank,
    size,
    send: async (to, tag, bytes) => underWay.start(move("send", to, tag, bytes)),
    receive: async (from, tag, into) => underWay.start(move("receive", from, tag, into)),
    begin({ kind, rank: peer, tag, bytes }, ended) {
      underWay.begin(move(kind, peer, tag, bytes), ended);
    },
    poll() {
      underWay.poll();
    },
    exchangeNow(moves, timeout) {
      const all = moves.map(({ kind, rank: peer, tag, bytes }) => move(kind, peer, tag, bytes));
      underWay.now(all, timeout);
    },
    allReduceOf(members, dtype) {
      const element = ELEMENTS.indexOf(dtype);
      if (members.length !== size || element < 0) return undefined;
      return async (_, bytes, reduction) => {
        const post = (id: number) => addon.post(id, REDUCE, element, REDUCTIONS.indexOf(reduction), bytes);
        await underWay.start({ where: "allReduce", length: bytes.byteLength, post });
      };
    },
    async close() {
      if (isClosing) return;
      isClosing = true;
      await underWay.close();
    },
  };
}

/** MPI_Init, on the thread that will own it. */
async function begin(addon: Addon, underWay: UnderWay, library: string, timeout: number): Promise<void> {
  const unavailable = (text: string) =>
    new OptError("DEVICE_UNAVAILABLE", "mpi", `MPI_Init of ${library} ${text}.`, OTHER_LIBRARY);
  let begun = false;
  await new Promise<void>((resolve, reject) => {
    const late = () => reject(unavailable(`waited ${timeout / 1000} s for the other ranks`));
    const timer = setTimeout(late, timeout);
    addon.start(PIECE, (id, outcome, count, text) => {
      if (id !== 0) underWay.ended(id, outcome, count, text);
      else if (begun) underWay.break(text);
      else {
        begun = true;
        clearTimeout(timer);
        if (outcome === FAILED) reject(unavailable(`failed: ${text}`));
        else resolve();
      }
    });
  });
  addon.hold(false);
}

/** A program that ends well waits for the others, as MPI_Finalize does; one that fails ends the job. */
function endWith(name: string, addon: Addon, goodbye: () => void, isClosing: () => boolean): void {
  let thrown = "";
  process.on("uncaughtExceptionMonitor", (error) => {
    thrown = `${inspect(error)}\n`;
  });
  process.on("exit", (code) => {
    if (code === 0) {
      if (!isClosing()) addon.close(AT_EXIT);
      while (!addon.join(3600)) {}
      goodbye(); // one that is killed while it waits for the others to end is named, too
      return;
    }
    // Node prints what was thrown after this; MPI_Abort does not come back.
    tell(`${thrown}mpi: ${name} ended with exit code ${code}; the job is over\n`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, UNTIL_READ);
    goodbye();
    addon.abort(code);
    addon.join(ABORT_WITHIN);
  });
}

function tell(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // Nobody reads it.
  }
}
