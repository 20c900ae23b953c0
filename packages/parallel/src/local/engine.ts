/** The engine of `opt-run`: ranks are processes of this machine, with a socket between any two and memory that all can read. */
import { Socket } from "node:net";
import { isMainThread } from "node:worker_threads";
import { check, OptError } from "@opt/core";
import type { Engine, Move } from "../engine/engine";
import { Arena } from "./arena";
import { CHUNK, exchangeNow } from "./exchange-now";
import { KEY, LAUNCHER, memoryOf, NAME, ownPlace } from "./job";
import { Peer } from "./peer";
import { rendezvous } from "./rendezvous";
import { SharedFile } from "./shared-file";

/** What one rank has sent and others have not read yet lies in at most so much memory; more waits. */
const MOST_MEMORY = 512 << 20;
/** When a rank has died the launcher ends the job, and says why. Only where it does not, this rank speaks. */
const LAUNCHER_SPEAKS_WITHIN = 1500;

export async function openLocal(timeout: number): Promise<Engine> {
  check(
    isMainThread,
    "UNSUPPORTED",
    "connect",
    () => "a rank is a process, got a worker thread.",
    "Connect in the main thread.",
  );
  const { rank, size } = ownPlace()!;
  const arena = new Arena(new SharedFile(memoryOf(rank)), MOST_MEMORY);
  const peers: (Peer | undefined)[] = [];
  let isClosed = false;
  const join = (other: number, socket: Socket) => {
    const memory = new SharedFile(memoryOf(other));
    const peer = new Peer(other, socket, descriptorOf(socket), arena, memory, () => {
      for (const each of peers) each?.pump();
    });
    peers[other] = peer;
    const lost = () => peer.lost(ended(other), LAUNCHER_SPEAKS_WITHIN);
    socket.on("end", lost).on("close", lost);
  };
  const launcher = new Socket({ fd: LAUNCHER, readable: true, writable: true });
  launcher.on("error", () => {});
  launcher.on("close", () => {
    if (isClosed) return;
    process.stderr.write(`opt-run: the launcher of rank ${rank} is gone\n`);
    process.exit(1);
  });
  launcher.resume();
  if (size > 1) {
    const job = { rank, size, name: process.env[NAME]!, key: process.env[KEY]! };
    await rendezvous(job, launcher, timeout, (sockets) => {
      for (const [other, socket] of sockets.entries()) if (socket !== undefined) join(other, socket);
    });
  }
  launcher.unref();

  const open = (where: string, other: number): Peer => {
    check(
      !isClosed,
      "DISPOSED",
      where,
      () => "the engine was closed.",
      "Close the communicator at the end of the program.",
    );
    return peers[other]!;
  };
  const begin: NonNullable<Engine["begin"]> = ({ kind, rank: other, tag, bytes }, ended) =>
    open(kind, other)[kind](tag, bytes, ended);
  const whole = (move: Move) =>
    new Promise<void>((resolve, reject) => begin(move, (error) => (error ? reject(error) : resolve())));
  const present = peers.filter((peer) => peer !== undefined);
  const chunk = Buffer.allocUnsafe(CHUNK);
  return {
    name: "local",
    rank,
    size,
    send: async (to, tag, bytes) => whole({ kind: "send", rank: to, tag, bytes }),
    receive: async (from, tag, into) => whole({ kind: "receive", rank: from, tag, bytes: into }),
    begin,
    poll() {
      for (const peer of present) peer.poll(chunk); // a rank that has ended is told by the event loop
    },
    exchangeNow(moves, timeout) {
      exchangeNow(
        moves.map((move) => ({ ...move, peer: open(move.kind, move.rank) })),
        present,
        timeout,
      );
    },
    async close() {
      isClosed = true;
      await Promise.all(peers.map((peer) => peer?.close()));
      launcher.destroy();
    },
  };
}

/** The descriptor of an open socket, which Node has in its handle alone. */
const descriptorOf = (socket: Socket) => (socket as unknown as { _handle: { fd: number } })._handle.fd;

function ended(rank: number): OptError {
  return new OptError("IO", "receive", `rank ${rank} has ended while this rank needs it.`, "See what it wrote last.");
}
