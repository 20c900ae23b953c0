/** Some ranks of a job that talk to each other: whose message is whose, how long one waits, and what was sent. */
import { check, checkRepeatable, OptError } from "@opt/core";
import type { Engine, Move } from "../engine/engine";

/** Tags: 12 bits of the group, 12 of the operation, 2 of its phase. Messages of one tag stay in order, so that numbers may come again. */
const MOST_GROUPS = 1 << 12;
/** Groups below are the axes of meshes. */
export const FIRST_SPLIT = 1 << 8;
const OPERATIONS = 1 << 12;
const PHASES = 4;

/** What this process sent: the cost model's figures, counted. */
export interface Traffic {
  messages: number;
  bytes: number;
}

/** What the groups of one engine share. */
export interface World {
  readonly engine: Engine;
  readonly timeout: number;
  /** The number of the next group that this process has a part in. */
  nextGroup: number;
  /** Of the next axis of a mesh: all ranks make the same ones, and agree without a word. */
  nextMeshGroup: number;
  isClosed: boolean;
}

/** One collective: its messages belong together on all ranks. */
export interface Operation {
  send(to: number, phase: number, bytes: Uint8Array): Promise<void>;
  receive(from: number, phase: number, into: Uint8Array): Promise<void>;
  /** The same by a call: within `poll` of the group, or later. */
  begin(kind: Move["kind"], rank: number, phase: number, bytes: Uint8Array, ended: (error?: Error) => void): void;
  /** All of these before it returns. @throws OptError UNSUPPORTED where the engine cannot */
  now(moves: readonly { kind: Move["kind"]; rank: number; phase: number; bytes: Uint8Array }[]): void;
  /** For an engine's own collectives. */
  readonly tag: number;
}

export class Group {
  readonly rank: number;
  readonly size: number;
  readonly traffic: Traffic = { messages: 0, bytes: 0 };
  #operations = 1;
  #isClosed = false;

  /** @param members ranks of the world, by their rank in this group */
  constructor(
    readonly world: World,
    readonly name: string,
    readonly members: readonly number[],
    private readonly number: number,
  ) {
    const most = () => `a job has at most ${MOST_GROUPS} groups of ranks, got one more.`;
    check(number < MOST_GROUPS, "UNSUPPORTED", "split", most, "Split once, before the training loop.");
    const axes = () => `a job has at most ${FIRST_SPLIT - 1} axes of meshes, got one more.`;
    check(
      world.nextMeshGroup <= FIRST_SPLIT,
      "UNSUPPORTED",
      "mesh",
      axes,
      "Make a mesh once, before the training loop.",
    );
    this.rank = members.indexOf(world.engine.rank);
    this.size = members.length;
  }

  /** The next collective, which every rank begins in the same order. @throws OptError DISPOSED */
  begin(where: string): Operation {
    this.#checkOpen(where);
    // 0 is of messages from one rank to another.
    const operation = this.#operations;
    this.#operations = (operation % (OPERATIONS - 1)) + 1;
    return this.#operation(where, operation);
  }

  /** Messages between two ranks, which take part in no collective. @throws OptError DISPOSED */
  pairwise(where: string): Operation {
    this.#checkOpen(where);
    return this.#operation(where, 0);
  }

  /** @throws OptError BAD_ARGUMENT */
  checkRank(where: string, name: string, rank: unknown): asserts rank is number {
    const isRank = Number.isInteger(rank) && (rank as number) >= 0 && (rank as number) < this.size;
    const problem = () => `${name} must be a rank of "${this.name}", 0 to ${this.size - 1}, got ${String(rank)}.`;
    check(isRank, "BAD_ARGUMENT", where, problem);
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Takes what has come, without waiting, where the engine can: in the middle of a backward nothing else does. */
  poll(): void {
    this.world.engine.poll?.();
  }

  /** What an engine does among all ranks of the group. */
  together(where: string, moved: Promise<void>): Promise<void> {
    return settled((ended) => {
      const end = this.#within(where, undefined, ended);
      moved.then(() => end(), end);
    });
  }

  #checkOpen(where: string): void {
    checkRepeatable(where, "what other ranks send");
    const problem = () => `the communicator "${this.name}" was closed.`;
    check(!this.#isClosed && !this.world.isClosed, "DISPOSED", where, problem, "Close it at the end of the program.");
  }

  #operation(where: string, operation: number): Operation {
    const tag = (this.number * OPERATIONS + operation) * PHASES;
    const { engine } = this.world;
    const begin: Operation["begin"] = (kind, rank, phase, bytes, ended) => {
      if (kind === "send") this.#count(bytes);
      const end = this.#within(where, rank, ended);
      const move = { kind, rank: this.members[rank]!, tag: tag + phase, bytes };
      if (!engine.begin) engine[kind](move.rank, move.tag, bytes).then(() => end(), end);
      else {
        try {
          engine.begin(move, end);
        } catch (error) {
          end(error as Error);
        }
      }
    };
    return {
      tag,
      begin,
      send: (to, phase, bytes) => settled((ended) => begin("send", to, phase, bytes, ended)),
      receive: (from, phase, into) => settled((ended) => begin("receive", from, phase, into, ended)),
      now: (moves) => {
        const problem = () => `the engine "${engine.name}" cannot wait in the middle of a forward or backward.`;
        check(engine.exchangeNow, "UNSUPPORTED", where, problem, "Use npx opt-run, or MPI.");
        for (const { kind, bytes } of moves) if (kind === "send") this.#count(bytes);
        engine.exchangeNow(
          moves.map(({ kind, rank, phase, bytes }) => ({ kind, rank: this.members[rank]!, tag: tag + phase, bytes })),
          this.world.timeout,
        );
      },
    };
  }

  #count({ byteLength }: Uint8Array): void {
    this.traffic.messages++;
    this.traffic.bytes += byteLength;
  }

  /** Nothing waits forever: a call of `ended`, or after a while one with an error. */
  #within(where: string, other: number | undefined, ended: (error?: Error) => void): (error?: Error) => void {
    const { timeout } = this.world;
    let isOver = false;
    const end = (error?: Error) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      ended(error);
    };
    const timer = setTimeout(() => {
      const whom = other === undefined ? "the others, of which one" : `rank ${other}, which`;
      const problem = `rank ${this.rank} of "${this.name}" waited ${timeout / 1000} s for ${whom} did not come.`;
      const advice = "All ranks call the same collectives in the same order; connect({ timeout }) waits longer.";
      end(new OptError("MISSING", where, problem, advice));
    }, timeout);
    return end;
  }
}

function settled(begin: (ended: (error?: Error) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => begin((error) => (error ? reject(error) : resolve())));
}

/** Waits for all, so that none goes on alone, and then throws the first error. */
export async function all(moves: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(moves)).find((move) => move.status === "rejected");
  if (failed) throw failed.reason;
}

/** The other ranks, the next one first: so that not all send to the same one. */
export function others({ rank, size }: Group): number[] {
  return Array.from({ length: size - 1 }, (_, i) => (rank + i + 1) % size);
}
