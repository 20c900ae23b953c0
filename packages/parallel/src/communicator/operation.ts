/** One collective, or one message: what it moves belongs together on all ranks that take part, and ends together when it fails. */
import { check, OptError } from "@opt/core";
import type { Move } from "../engine/engine";
import { ADVICE, difference, HEADING_BYTES, type Heading, written } from "./heading";
import type { Members } from "./world";

/** Of its messages; the last is that of headings. */
export const PHASES = 4;
const HEADINGS = PHASES - 1;

type EndCallback = (error?: Error) => void;

/** To whom this rank says what it calls, and who says it to this one. */
export interface Ring {
  readonly to: readonly number[];
  readonly from: readonly number[];
}

export class Operation {
  readonly #open = new Set<EndCallback>();
  #failure: Error | undefined;
  /** Headings that are on their way. */
  #unheard = 0;
  readonly #whenAgreed: EndCallback[] = [];
  /** What goes along with the first `now`. */
  #headings: { kind: Move["kind"]; rank: number; phase: number; bytes: Uint8Array }[];
  readonly #ours: Uint8Array;

  /** @param tag its first one, of `PHASES` */
  constructor(
    private readonly group: Members,
    private readonly where: string,
    readonly tag: number,
    private readonly heading: Heading,
    { to, from }: Ring,
  ) {
    this.#ours = written(heading);
    this.#headings = [
      ...to.map((rank) => ({ kind: "send" as const, rank, phase: HEADINGS, bytes: this.#ours })),
      ...from.map((rank) => ({
        kind: "receive" as const,
        rank,
        phase: HEADINGS,
        bytes: new Uint8Array(HEADING_BYTES),
      })),
    ];
  }

  /** Says what this rank calls, and listens to who says it to this one. Where that differs all ends with an error. */
  agree(): this {
    this.#unheard = this.#headings.length;
    for (const { kind, rank, phase, bytes } of this.#headings.splice(0))
      this.begin(kind, rank, phase, bytes, (error) => {
        this.#unheard--;
        const failure = error ?? (kind === "receive" ? this.#difference(rank, bytes) : undefined);
        if (failure) this.#fail(failure);
        if (this.#unheard === 0) for (const ended of this.#whenAgreed.splice(0)) ended(this.#failure);
      });
    return this;
  }

  /** A call when the headings have come; at once where they have. */
  whenAgreed(ended: EndCallback): void {
    if (this.#unheard === 0) ended(this.#failure);
    else this.#whenAgreed.push(ended);
  }

  send(to: number, phase: number, bytes: Uint8Array): Promise<void> {
    return settled((ended) => this.begin("send", to, phase, bytes, ended));
  }

  receive(from: number, phase: number, into: Uint8Array): Promise<void> {
    return settled((ended) => this.begin("receive", from, phase, into, ended));
  }

  /** The same by a call: within `poll` of the group, or later. */
  begin(kind: Move["kind"], rank: number, phase: number, bytes: Uint8Array, ended: EndCallback): void {
    const { group } = this;
    const { engine } = group.world;
    if (this.#failure) {
      ended(this.#failure);
      return;
    }
    if (kind === "send") this.#count(bytes);
    const end = this.#within(rank, ended);
    const move = { kind, rank: group.members[rank]!, tag: this.tag + phase, bytes };
    if (!engine.begin) engine[kind](move.rank, move.tag, bytes).then(() => end(), end);
    else {
      try {
        engine.begin(move, end);
      } catch (error) {
        end(error as Error);
      }
    }
  }

  /** Waits for all of these, so that none goes on alone, and for the headings; then throws the first error. */
  async all(moves: readonly Promise<void>[]): Promise<void> {
    const agreed = settled((ended) => this.whenAgreed(ended));
    const failed = (await Promise.allSettled([...moves, agreed])).find((move) => move.status === "rejected");
    if (failed) throw this.#failure ?? failed.reason;
  }

  /** What an engine does among all ranks of the group. */
  together(moved: Promise<void>): Promise<void> {
    return settled((ended) => {
      const end = this.#within(undefined, ended);
      moved.then(() => end(), end);
    });
  }

  /** All of these before it returns. @throws OptError UNSUPPORTED if the engine cannot */
  now(moves: readonly { kind: Move["kind"]; rank: number; phase: number; bytes: Uint8Array }[]): void {
    const { group, where } = this;
    const { engine, timeout } = group.world;
    check(
      engine.exchangeNow,
      "UNSUPPORTED",
      where,
      () => `the engine "${engine.name}" cannot wait in the middle of a forward or backward.`,
      "Use npx opt-run, or MPI.",
    );
    const headings = this.#headings.splice(0);
    const all = [...headings, ...moves].map(({ kind, rank, phase, bytes }) => {
      if (kind === "send") this.#count(bytes);
      return { kind, rank: group.members[rank]!, tag: this.tag + phase, bytes };
    });
    const reject = () => {
      for (const { kind, rank, bytes } of headings) {
        const rejection = kind === "receive" ? this.#difference(rank, bytes) : undefined;
        if (rejection) throw rejection;
      }
    };
    try {
      engine.exchangeNow(all, timeout);
    } catch (error) {
      reject(); // why it failed, where that is known
      throw (error as OptError).code === "IO" ? this.#missed(error as OptError) : error;
    }
    reject();
  }

  #count({ byteLength }: Uint8Array): void {
    this.group.traffic.messages++;
    this.group.traffic.bytes += byteLength;
  }

  #difference(rank: number, theirs: Uint8Array): OptError | undefined {
    return difference(this.where, this.heading, this.#ours, theirs, rank);
  }

  /** An engine knows bytes of a part; and a heading that is on its way may say more. */
  #otherSize(other: number | undefined, cause: Error | undefined): OptError {
    const { what, dtype = "", shape = "" } = this.heading;
    const problem = `rank ${other} sends another size than ${[what, dtype, shape].filter(Boolean).join(" ")} has here.`;
    return new OptError("BAD_SHAPE", this.where, problem, ADVICE, { cause });
  }

  /** Which collective a rank's end leaves unfinished. */
  #missed(error: OptError): OptError {
    const problem = `${this.heading.what} cannot end: ${error.message}`;
    const advice =
      "All ranks call each collective as often. Ranks with fewer batches call sync() without a backward; a checkpoint is saved by all ranks.";
    return new OptError("IO", this.where, problem, advice, { cause: error });
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const end of [...this.#open]) end(this.#failure);
  }

  /** Nothing waits forever: a call of `ended`, or after a while one with an error. */
  #within(other: number | undefined, ended: EndCallback): EndCallback {
    const { rank, name, world } = this.group;
    let isOver = false;
    const end: EndCallback = (error) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      this.#open.delete(end);
      if (error === this.#failure) ended(error);
      else if ((error as OptError | undefined)?.code === "IO") ended(this.#missed(error as OptError));
      else if ((error as OptError | undefined)?.code !== "BAD_SHAPE" || this.#failure) ended(error);
      else this.whenAgreed((failure) => ended(failure ?? this.#otherSize(other, error)));
    };
    const timer = setTimeout(() => {
      const whom = other === undefined ? "the others, of which one" : `rank ${other}, which`;
      const problem = `rank ${rank} of "${name}" waited ${world.timeout / 1000} s for ${whom} did not come to ${this.heading.what}.`;
      const advice = "All ranks call the same collectives in the same order; connect({ timeout }) waits longer.";
      end(new OptError("MISSING", this.where, problem, advice));
    }, world.timeout);
    this.#open.add(end);
    return end;
  }
}

function settled(begin: (ended: EndCallback) => void): Promise<void> {
  return new Promise((resolve, reject) => begin((error) => (error ? reject(error) : resolve())));
}
