/** Ranks of one process, whose messages are in memory: many of them cost little. */
import { Communicator, WORLD } from "../src/communicator/communicator";
import { FIRST_SPLIT, Group } from "../src/communicator/group";
import type { Engine } from "../src/engine/engine";

/** The communicators of all ranks, in order. */
export function memoryRanks(size: number): Communicator[] {
  const lines = new Map<string, Line>();
  const lineOf = (from: number, to: number, tag: number) => {
    const key = `${from} ${to} ${tag}`;
    const line = lines.get(key) ?? new Line();
    lines.set(key, line);
    return line;
  };
  const ranks = Array.from({ length: size }, (_, rank) => rank);
  return ranks.map((rank) => {
    const engine: Engine = {
      ...{ name: "memory", rank, size },
      send: async (to, tag, bytes) => lineOf(rank, to, tag).put(bytes.slice()),
      receive: async (from, tag, into) => into.set(await lineOf(from, rank, tag).next()),
      close: async () => {},
      /** In the order of the ranks. */
      allReduceOf: (members, dtype) =>
        dtype !== "f32"
          ? undefined
          : async (tag, bytes, reduction) => {
              if (reduction !== "sum") throw new Error("only sums");
              for (const to of members) lineOf(rank, to, tag).put(bytes.slice());
              const rows = await Promise.all(members.map((from) => lineOf(from, rank, tag).next()));
              const [first, ...others] = rows.map((row) => new Float32Array(row.buffer));
              for (const other of others) for (const [i, value] of other.entries()) first![i]! += value;
              bytes.set(new Uint8Array(first!.buffer));
            },
    };
    const world = { engine, timeout: 10_000, nextGroup: FIRST_SPLIT, nextMeshGroup: 1, isClosed: false };
    return new Communicator(new Group(world, WORLD, ranks, 0));
  });
}

/** Messages of one sender with one tag, in the order in which they were sent. */
class Line {
  readonly #messages: Uint8Array[] = [];
  readonly #waiting: ((bytes: Uint8Array) => void)[] = [];

  put(bytes: Uint8Array): void {
    const waiting = this.#waiting.shift();
    if (waiting) waiting(bytes);
    else this.#messages.push(bytes);
  }

  async next(): Promise<Uint8Array> {
    return this.#messages.shift() ?? new Promise((resolve) => this.#waiting.push(resolve));
  }
}
