/** What ranks write: each line whole, with the number of its rank; a stack that several ranks print is there once. */
import type { Readable } from "node:stream";

/** Lines of a stack that come apart are still one, within so many milliseconds. */
const PAUSE = 200;
/** Stacks that are remembered. */
const MOST = 1000;

export class RankLines {
  readonly #write: (text: string) => void;
  /** Which rank printed a stack first. */
  readonly #stacks = new Map<string, number>();
  /** By rank, the lines of a stack that has not ended. */
  readonly #open = new Map<number, { readonly lines: string[]; readonly timer: NodeJS.Timeout }>();

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  /** Hands on the lines of a rank's stream; one without an end when the stream ends. */
  follow(stream: Readable, rank: number): void {
    eachLine(
      stream,
      (line) => this.line(rank, line),
      () => this.end(rank),
    );
  }

  line(rank: number, text: string): void {
    if (!/^\s+at /.test(text)) {
      this.end(rank);
      this.#write(`[${rank}] ${text}\n`);
      return;
    }
    const known = this.#open.get(rank);
    if (known) known.lines.push(text);
    else this.#open.set(rank, { lines: [text], timer: setTimeout(() => this.end(rank), PAUSE) });
  }

  /** The rank writes no more lines of its stack. */
  end(rank: number): void {
    const { lines = [], timer } = this.#open.get(rank) ?? {};
    clearTimeout(timer);
    this.#open.delete(rank);
    if (lines.length === 0) return;
    const stack = lines.join("\n");
    const first = this.#stacks.get(stack) ?? rank;
    if (this.#stacks.size < MOST) this.#stacks.set(stack, first);
    for (const line of first === rank ? lines : [`    at the same lines as rank ${first}`])
      this.#write(`[${rank}] ${line}\n`);
  }
}

/** Calls `take` with each line of a stream, the last one also without an end, and `end` after it. */
export function eachLine(stream: Readable, take: (line: string) => void, end: () => void = () => {}): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) take(line);
  });
  stream.on("end", () => {
    if (rest !== "") take(rest);
    end();
  });
}
