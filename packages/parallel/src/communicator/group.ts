/** Some ranks of a job that talk to each other: whose message is whose, how long one waits, and what was sent. */
import { check, runsOnce } from "@opt/core";
import { digest } from "./digest";
import type { Heading } from "./heading";
import { Operation, PHASES, type Ring } from "./operation";
import type { Members, Traffic, World } from "./world";

/** Tags: a bit of what is said aside, 11 of the group, 12 of the operation, 2 of its phase. Messages of one tag stay in order, so that numbers may come again. */
const MOST_GROUPS = 1 << 11;
/** Groups below are the axes of meshes. */
export const FIRST_SPLIT = 1 << 8;
const OPERATIONS = 1 << 12;
/** More become one number: layers that never talk are noted all the same. */
const MOST_NOTES = 16;
const encoder = new TextEncoder();

/** How a group belongs to another one, with which it is closed. */
interface Belongs {
  readonly main: Group;
  /** Its collectives take their turn among those of `main`, and need no number of their own. */
  readonly isWithin: boolean;
}

export class Group implements Members {
  readonly rank: number;
  readonly size: number;
  readonly traffic: Traffic;
  #operations = 1;
  readonly #notes: string[] = [];
  #isClosed = false;

  /** @param members ranks of the world, by their rank in this group */
  constructor(
    readonly world: World,
    readonly name: string,
    readonly members: readonly number[],
    private readonly number: number,
    private readonly belongs?: Belongs,
  ) {
    check(
      number < MOST_GROUPS,
      "UNSUPPORTED",
      "split",
      () => `a job has at most ${MOST_GROUPS} groups of ranks, got one more.`,
      "Split once, before the training loop.",
    );
    check(
      world.nextMeshGroup <= FIRST_SPLIT,
      "UNSUPPORTED",
      "mesh",
      () => `a job has at most ${FIRST_SPLIT - 1} axes of meshes, got one more.`,
      "Make a mesh once, before the training loop.",
    );
    this.rank = members.indexOf(world.engine.rank);
    this.size = members.length;
    this.traffic = belongs?.main.traffic ?? { messages: 0, bytes: 0 };
  }

  /** The same ranks, whose collectives do not mix with those of this one. */
  aside(): Group {
    const belongs = { main: this, isWithin: false };
    return new Group(this.world, `${this.name}, aside`, this.members, this.number, belongs);
  }

  /** Some of these ranks. All ranks of this group begin as many collectives in such groups, in the same order. */
  within(name: string, members: readonly number[]): Group {
    return new Group(this.world, name, members, this.number, { main: this, isWithin: true });
  }

  /** The next collective, which every rank begins in the same order, and says so to the next rank. @throws OptError DISPOSED */
  begin(where: string, heading: Heading): Operation {
    return this.#next(where, heading).agree();
  }

  /** The same for one whose moves are made by `now`. @throws OptError DISPOSED */
  beginNow(where: string, heading: Heading): Operation {
    return this.#next(where, heading);
  }

  /** A message to a rank, or from one, which take part in no collective. @throws OptError DISPOSED */
  pairwise(where: string, heading: Heading, ring: Ring): Operation {
    this.#checkOpen(where);
    return new Operation(this, where, this.#tag(0), heading, ring).agree();
  }

  /** What is the same on all ranks: the next collective's heading says it. */
  note(what: string): void {
    if (this.size === 1) return;
    if (this.#notes.length === MOST_NOTES) this.#notes.push(digest(encoder.encode(this.#notes.splice(0).join("\n"))));
    this.#notes.push(what);
  }

  /** @throws OptError BAD_ARGUMENT */
  checkRank(where: string, name: string, rank: unknown): asserts rank is number {
    const isRank = Number.isInteger(rank) && (rank as number) >= 0 && (rank as number) < this.size;
    check(
      isRank,
      "BAD_ARGUMENT",
      where,
      () => `${name} must be a rank of "${this.name}", 0 to ${this.size - 1}, got ${String(rank)}.`,
    );
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Takes what has come, without waiting, where the engine can: in the middle of a backward nothing else does. */
  poll(): void {
    this.world.engine.poll?.();
  }

  #checkOpen(where: string): void {
    runsOnce(where, "talk to other ranks", "Compile what comes before and after it: two functions.");
    const isClosed = this.#isClosed || (this.belongs?.main ?? this).#isClosed || this.world.isClosed;
    check(
      !isClosed,
      "DISPOSED",
      where,
      () => `the communicator "${this.name}" was closed.`,
      "Close it at the end of the program.",
    );
  }

  #next(where: string, heading: Heading): Operation {
    this.#checkOpen(where);
    const { size, rank } = this;
    const ring = size === 1 ? { to: [], from: [] } : { to: [(rank + 1) % size], from: [(rank + size - 1) % size] };
    return new Operation(this, where, this.#nextTag(), this.#withNotes(heading), ring);
  }

  #nextTag(): number {
    if (this.belongs?.isWithin) return this.belongs.main.#nextTag();
    // 0 is of messages from one rank to another.
    const operation = this.#operations;
    this.#operations = (operation % (OPERATIONS - 1)) + 1;
    return this.#tag(operation);
  }

  #tag(operation: number): number {
    if (this.belongs?.isWithin) return this.belongs.main.#tag(operation);
    return (((this.belongs ? MOST_GROUPS : 0) + this.number) * OPERATIONS + operation) * PHASES;
  }

  #withNotes(heading: Heading): Heading {
    const notes = this.#notes.splice(0);
    return notes.length === 0 ? heading : { ...heading, more: [...(heading.more ?? []), ...notes] };
  }
}

/** The other ranks, the next one first: so that not all send to the same one. */
export function others({ rank, size }: Group): number[] {
  return Array.from({ length: size - 1 }, (_, i) => (rank + i + 1) % size);
}
