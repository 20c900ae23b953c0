/** Messages under way: each has a number, and whoever waits for it. */
import { OptError } from "@opt/core";
import { type Addon, type EndCallback, LONGER, MOVED, PEER_ENDED, SHORTER } from "./addon";

export interface Transfer {
  readonly where: string;
  /** Undefined where all ranks take part. */
  readonly peer?: number;
  /** The bytes that are expected. */
  readonly length: number;
  /** Hands it to the native thread. */
  post(id: number): void;
}

interface PendingTransfer extends Transfer {
  told(error?: OptError): void;
}

/** Numbers are 32 bits; 0 is of the library itself, the last one of the end of the program. */
const MOST = 0xfffffffe;

export class UnderWay {
  readonly #waiting = new Map<number, PendingTransfer>();
  #last = 0;
  #broken: OptError | undefined;

  constructor(private readonly addon: Addon) {}

  start(moving: Transfer): Promise<void> {
    return new Promise((resolve, reject) => this.begin(moving, (error) => (error ? reject(error) : resolve())));
  }

  /** Tells of what has ended, without waiting. */
  poll(): void {
    if (this.#waiting.size > 0) this.addon.wait(Uint32Array.from(this.#waiting.keys()), 0);
  }

  /** All of these before it returns; the thread of JavaScript waits. @throws OptError as messages reject, MISSING */
  now(all: readonly Transfer[], timeout: number): void {
    let failed: OptError | undefined;
    const late = new Map<number, Transfer>();
    for (const moving of all) {
      let id = 0;
      const done = (error?: OptError) => {
        failed ??= error;
        late.delete(id);
      };
      id = this.begin(moving, done);
      if (id !== 0) late.set(id, moving);
    }
    this.addon.wait(Uint32Array.from(late.keys()), timeout);
    for (const id of late.keys()) this.#forget(id);
    if (failed) throw failed;
    const [first] = late.values();
    if (first === undefined) return;
    const problem = `waited ${timeout / 1000} s for rank ${first.peer}, which did not come.`;
    const advice = "All ranks call the same collectives in the same order; connect({ timeout }) waits longer.";
    throw new OptError("MISSING", first.where, problem, advice);
  }

  readonly ended: EndCallback = (id, outcome, count, text) => {
    const waiting = this.#waiting.get(id);
    this.#forget(id);
    waiting?.told(outcome === MOVED ? undefined : problemOf(waiting, outcome, count, text));
  };

  /** Ends when what was sent has left. Nobody waits for anything after it. */
  async close(): Promise<void> {
    await this.start({ where: "close", length: 0, post: (id) => this.addon.close(id) });
    this.#waiting.clear();
    this.addon.hold(false);
  }

  /** The library has failed: nothing that is under way ends any more. */
  break(text: string): void {
    this.#broken = new OptError("IO", "mpi", `the MPI library failed: ${text}.`, "See what it wrote before.");
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    this.addon.hold(false);
    for (const { told } of all) told(this.#broken);
  }

  #forget(id: number): void {
    if (this.#waiting.delete(id) && this.#waiting.size === 0) this.addon.hold(false);
  }

  /** Its number; 0 if it is rejected at once. @param told once, when it has ended */
  begin(moving: Transfer, told: (error?: OptError) => void): number {
    if (this.#broken) {
      told(this.#broken);
      return 0;
    }
    do this.#last = (this.#last % MOST) + 1;
    while (this.#waiting.has(this.#last));
    if (this.#waiting.size === 0) this.addon.hold(true);
    const id = this.#last;
    this.#waiting.set(id, { ...moving, told });
    moving.post(id);
    return id;
  }
}

function problemOf({ where, peer, length }: Transfer, outcome: number, count: number, text: string): OptError {
  if (outcome === SHORTER || outcome === LONGER) {
    const sent = outcome === LONGER ? `more than ${length}` : count;
    const advice = "All ranks call the same collectives in the same order, with tensors of one size.";
    const problem = `rank ${peer} sent ${sent} bytes where this rank waits for ${length}.`;
    return new OptError("BAD_SHAPE", where, problem, advice);
  }
  if (outcome === PEER_ENDED) {
    const problem = `rank ${peer ?? count} has ended while this rank needs it.`;
    return new OptError("IO", where, problem, "See what it wrote last.");
  }
  const whom = peer === undefined ? "all ranks" : `rank ${peer}`;
  return new OptError("IO", where, `the message with ${whom} failed: ${text}.`, "See what it wrote last.");
}
