/** The rendezvous of the ranks: when all listen, each connects to those before it; when all are connected, all begin. */
import { timingSafeEqual } from "node:crypto";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OptError } from "@opt/core";

/** What the launcher tells its ranks about the job. */
export interface Job {
  readonly rank: number;
  readonly size: number;
  /** In the names of sockets, which others on this machine can see. */
  readonly name: string;
  /** What a rank says first: others cannot know it. */
  readonly key: string;
}

/** Lines on the socket between a rank and its launcher. */
export const LISTENING = "listening";
export const CONNECT = "connect";
export const CONNECTED = "connected";
export const BEGIN = "begin";
/** Followed by a rank that ended before the others began. */
export const GONE = "gone";

/** On Linux a name without a file: nothing is left behind. */
const pathOf = ({ name }: Job, rank: number) =>
  process.platform === "linux" ? `\0opt-run-${name}-${rank}` : join(tmpdir(), `opt-run-${name}-${rank}`);

/**
 * A socket to each other rank, by its number.
 *
 * @param connected is given the sockets before any rank sends on one
 * @throws OptError IO if a rank ended meanwhile; MISSING after `timeout` milliseconds
 */
export async function rendezvous(
  job: Job,
  launcher: Socket,
  timeout: number,
  connected: (sockets: readonly (Socket | undefined)[]) => void,
): Promise<void> {
  const { rank, size } = job;
  const sockets: (Socket | undefined)[] = new Array(size).fill(undefined);
  const told = linesOf(launcher, timeout, rank);
  let missing = size - 1;
  let all = () => {};
  const complete = new Promise<void>((resolve) => (all = resolve));
  const arrived = (other: number, socket: Socket) => {
    sockets[other] = socket;
    if (--missing === 0) all();
  };
  // Who connects and does not say the key must not keep a finished job alive.
  const strangers = new Set<Socket>();
  const server = await listen(job, strangers, arrived);
  try {
    launcher.write(`${LISTENING}\n`);
    await told(CONNECT);
    for (let other = 0; other < rank; other++) {
      const socket = connect({ path: pathOf(job, other), allowHalfOpen: true });
      socket.write(greeting(job));
      arrived(other, socket);
    }
    await Promise.all([complete, ...sockets.slice(0, rank).map((socket) => opened(socket!))]);
    connected(sockets);
    launcher.write(`${CONNECTED}\n`);
    await told(BEGIN);
  } finally {
    server.close();
    for (const stranger of strangers) stranger.destroy();
  }
}

/** Takes the ranks behind this one. */
function listen(job: Job, strangers: Set<Socket>, arrived: (rank: number, socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const length = greeting(job).byteLength;
    strangers.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("data", (first: Buffer) => {
      const other = first.byteLength === length ? first.readUInt32LE(0) : -1;
      const isRank = other > job.rank && other < job.size && timingSafeEqual(first, greeting({ ...job, rank: other }));
      strangers.delete(socket);
      if (isRank) arrived(other, socket);
      else socket.destroy();
    });
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path: pathOf(job, job.rank), backlog: 511 }, () => resolve(server));
  });
}

/** The rank and the key. */
function greeting({ rank, key }: Job): Buffer {
  const number = Buffer.alloc(4);
  number.writeUInt32LE(rank);
  return Buffer.concat([number, Buffer.from(key, "hex")]);
}

function opened(socket: Socket): Promise<void> {
  if (!socket.connecting) return Promise.resolve();
  return new Promise((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
}

/** Waits for a line of the launcher. */
function linesOf(launcher: Socket, timeout: number, rank: number): (line: string) => Promise<void> {
  const lines: string[] = [];
  let look = () => {};
  let rest = "";
  launcher.on("data", (chunk: Buffer) => {
    const parts = (rest + chunk.toString()).split("\n");
    rest = parts.pop()!;
    lines.push(...parts);
    look();
  });
  return (wanted) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const problem = `rank ${rank} waited ${timeout / 1000} s for the other ranks, of which one did not connect.`;
        const advice = "All ranks call connect(); connect({ timeout }) waits longer.";
        reject(new OptError("MISSING", "connect", problem, advice));
      }, timeout);
      look = () => {
        const gone = lines.find((line) => line.startsWith(GONE))?.split(" ")[1];
        if (!lines.includes(wanted) && gone === undefined) return;
        clearTimeout(timer);
        const problem = `rank ${gone} has ended before it connected.`;
        if (gone === undefined) resolve();
        else reject(new OptError("IO", "connect", problem, "See what it wrote last; all ranks call connect()."));
      };
      look();
    });
}
