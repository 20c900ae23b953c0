/** The engine of `mpirun` and `srun`: messages go through the MPI library of the launcher, on a native thread that owns it. */
import { writeSync } from "node:fs";
import { inspect } from "node:util";
import { isMainThread } from "node:worker_threads";
import { check, OptError } from "@opt/core";
import type { Engine } from "@opt/parallel";
import { FAILED, LONGER, loadAddon, MOVED, PEER_ENDED, SHORTER } from "./addon";
import { type Launcher, TAKEN } from "./launcher";
import { openLibrary } from "./library";
import { writeObituary } from "./obituary";

/** Counts of MPI are ints. */
const PIECE = 2 ** 30;
/** MPI_Init waits for all ranks to begin. */
const BEGIN_WITHIN = 120_000;
/** MPI_Abort ends this process, too; where it does not, the process ends by itself after so many seconds. */
const ABORT_WITHIN = 3;

interface Moving {
  readonly where: string;
  readonly peer: number;
  readonly length: number;
  resolve(): void;
  reject(error: Error): void;
}

export async function open(launcher: Launcher): Promise<Engine> {
  const inWorker = () => "a rank is a process, got a worker thread.";
  check(isMainThread, "UNSUPPORTED", "mpi", inWorker, "Connect in the main thread.");
  const addon = loadAddon();
  const library = openLibrary(addon, launcher);
  const { rank: known, size: expected } = launcher;
  const goodbye =
    launcher.kind === "hydra" && known !== undefined && expected !== undefined
      ? writeObituary(known, expected)
      : () => {};

  const moving = new Map<number, Moving>();
  let last = 0;
  let broken: OptError | undefined;
  let isClosing = false;
  let begun: ((text: string | undefined) => void) | undefined;

  const begin = (where: string, peer: number, length: number, start: (id: number) => void): Promise<void> => {
    if (broken) return Promise.reject(broken);
    return new Promise<void>((resolve, reject) => {
      do last = (last % 0xfffffffe) + 1;
      while (moving.has(last));
      if (moving.size === 0) addon.hold(true);
      moving.set(last, { where, peer, length, resolve, reject });
      start(last);
    });
  };
  const ended = (id: number, outcome: number, count: number, text: string) => {
    if (id === 0) {
      if (begun) begun(outcome === FAILED ? text : undefined);
      else breakDown(text);
      return;
    }
    const message = moving.get(id);
    moving.delete(id);
    if (moving.size === 0) addon.hold(false);
    if (outcome === MOVED) message?.resolve();
    else message?.reject(problemOf(message, outcome, count, text));
  };
  const breakDown = (text: string) => {
    broken = new OptError("IO", "mpi", `the MPI library failed: ${text}.`, "See what it wrote before.");
    for (const { reject } of moving.values()) reject(broken);
    moving.clear();
    addon.hold(false);
  };

  await new Promise<void>((resolve, reject) => {
    const unavailable = (text: string) => new OptError("DEVICE_UNAVAILABLE", "mpi", text, OTHER_LIBRARY);
    const timer = setTimeout(
      () => reject(unavailable(`MPI_Init of ${library} waited ${BEGIN_WITHIN / 1000} s for the other ranks.`)),
      BEGIN_WITHIN,
    );
    begun = (text) => {
      clearTimeout(timer);
      begun = undefined;
      if (text === undefined) resolve();
      else reject(unavailable(`MPI_Init of ${library} failed: ${text}.`));
    };
    addon.start(PIECE, ended);
  });
  addon.hold(false);
  const { rank, size, version } = addon.place();
  process.env[TAKEN] = String(process.pid);
  let thrown = "";
  process.on("uncaughtExceptionMonitor", (error) => {
    thrown = `${inspect(error)}\n`;
  });
  process.on("exit", (code) => {
    if (code === 0) {
      goodbye();
      if (!isClosing) addon.close(0xffffffff);
      while (!addon.join(3600)) {}
      return;
    }
    // Node prints what was thrown after this; MPI_Abort does not come back.
    tell(`${thrown}mpi: rank ${rank} of ${size} ended with exit code ${code}; the job is over\n`);
    goodbye();
    addon.abort(code);
    addon.join(ABORT_WITHIN);
  });
  const alone = () => `the launcher started ${expected} ranks, and ${library} (${version}) knows of ${size}.`;
  check(expected === undefined || expected === size, "DEVICE_UNAVAILABLE", "mpi", alone, OTHER_LIBRARY);

  const checkOpen = (where: string) => {
    const closed = () => "the engine was closed.";
    check(!isClosing, "DISPOSED", where, closed, "Close the communicator at the end of the program.");
  };
  return {
    name: "mpi",
    rank,
    size,
    async send(to, tag, bytes) {
      checkOpen("send");
      await begin("send", to, bytes.byteLength, (id) => addon.post(id, true, to, tag, bytes));
    },
    async receive(from, tag, into) {
      checkOpen("receive");
      await begin("receive", from, into.byteLength, (id) => addon.post(id, false, from, tag, into));
    },
    async close() {
      if (isClosing) return;
      isClosing = true;
      await begin("close", rank, 0, (id) => addon.close(id));
    },
  };
}

const OTHER_LIBRARY = "Name the launcher's own library in OPT_MPI_LIBRARY; with srun, try --mpi=pmix or --mpi=pmi2.";

function problemOf({ where, peer, length }: Moving, outcome: number, count: number, text: string): OptError {
  if (outcome === SHORTER || outcome === LONGER) {
    const sent = outcome === LONGER ? `more than ${length}` : count;
    const advice = "All ranks call the same collectives in the same order, with tensors of one size.";
    const problem = `rank ${peer} sent ${sent} bytes where this rank waits for ${length}.`;
    return new OptError("BAD_SHAPE", where, problem, advice);
  }
  if (outcome === PEER_ENDED) {
    const problem = `rank ${peer} has ended while this rank needs it.`;
    return new OptError("IO", where, problem, "See what it wrote last.");
  }
  return new OptError("IO", where, `the message with rank ${peer} failed: ${text}.`, "See what it wrote last.");
}

function tell(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // Nobody reads it.
  }
}
