/** Event files that TensorBoard reads. */
import type { FileSystem } from "@opt/checkpoint";
import { checkOptions } from "@opt/core";
import { checkPlace } from "../check";
import { createFile, type GrowingFile } from "../growing-file";
import { Message, recordOf } from "./protobuf";

export interface SummaryWriterOptions {
  /** Default: this machine's disk; in a page, its own files. */
  readonly fileSystem?: FileSystem;
}

/** Bytes that wait for the file at most, and milliseconds. */
const MOST_BYTES = 1 << 16;
const LONGEST = 2000;
const BINS = 30;
let files = 0;

/**
 * Writes scalars, histograms and text for TensorBoard into a new event file of a folder: `tensorboard --logdir runs`.
 *
 * @throws OptError BAD_ARGUMENT without a folder; MISSING, IO from `flush` and `close`
 * @example
 * const writer = new SummaryWriter("runs/a");
 * writer.scalar("loss", 0.25, 1);
 * await writer.close();
 */
export class SummaryWriter {
  readonly #file: Promise<GrowingFile>;
  #waiting = new Message();
  /** The message of each scalar, up to its number. */
  readonly #tagged = new Map<string, number[]>();
  #flushed = Date.now();

  constructor(folder: string, options: SummaryWriterOptions = {}) {
    checkPlace("SummaryWriter", "folder", folder);
    checkOptions("SummaryWriter", options, { fileSystem: "object" });
    const seconds = String(Math.floor(Date.now() / 1000)).padStart(10, "0");
    this.#file = createFile(`${folder}/events.out.tfevents.${seconds}.opt.${files++}`, options.fileSystem);
    this.#file.catch(() => {}); // thrown by flush
    this.#add(new Message().double(1, Date.now() / 1000).text(3, "brain.Event:2"));
  }

  /** A number of a step. */
  scalar(tag: string, value: number, step: number): void {
    this.scalars({ [tag]: value }, step);
  }

  /** All numbers of a step by name, in one event: many cost little more than one. */
  scalars(values: Readonly<Record<string, number>>, step: number): void {
    const summary = new Message();
    for (const tag of Object.keys(values)) {
      if (!this.#tagged.has(tag)) {
        const scalar = new Message().message(1, new Message().text(1, tag).float(2, 0));
        this.#tagged.set(tag, scalar.bytes.slice(0, -4));
      }
      summary.append(this.#tagged.get(tag)!).floatAlone(values[tag]!);
    }
    this.#summary(step, summary);
  }

  /** How numbers are spread, in 30 bins of equal width. NaN and infinity are left out. */
  histogram(tag: string, values: ArrayLike<number>, step: number): void {
    const { least, most, count, sum, squares, limits, counts } = spread(values);
    const histogram = new Message().double(1, least).double(2, most).double(3, count).double(4, sum).double(5, squares);
    const value = new Message().text(1, tag).message(5, histogram.doubles(6, limits).doubles(7, counts));
    this.#summary(step, new Message().message(1, value));
  }

  /** Text in Markdown. */
  text(tag: string, text: string, step: number): void {
    const plugin = new Message().message(1, new Message().text(1, "text"));
    const shape = new Message().message(2, new Message().varint(1, 1));
    const tensor = new Message().varint(1, 7).message(2, shape).text(8, text); // one element of strings
    const value = new Message().text(1, `${tag}/text_summary`).message(9, plugin).message(8, tensor);
    this.#summary(step, new Message().message(1, value));
  }

  /** Writes what waits. */
  async flush(): Promise<void> {
    const { bytes } = this.#waiting;
    this.#waiting = new Message();
    this.#flushed = Date.now();
    const file = await this.#file;
    if (bytes.length > 0) await file.append(Uint8Array.from(bytes));
  }

  /** Writes what waits if it is much, or old. */
  flushIfDue(): Promise<void> | undefined {
    return this.#waiting.bytes.length > MOST_BYTES || Date.now() - this.#flushed > LONGEST ? this.flush() : undefined;
  }

  async close(): Promise<void> {
    await this.flush();
    await (await this.#file).close();
  }

  #summary(step: number, summary: Message): void {
    this.#add(
      new Message()
        .double(1, Date.now() / 1000)
        .varint(2, step)
        .message(5, summary),
    );
  }

  #add(event: Message): void {
    this.#waiting.append(recordOf(event));
  }
}

function spread(values: ArrayLike<number>) {
  const finite = Array.from(values).filter(Number.isFinite);
  const least = finite.reduce((a, b) => Math.min(a, b), finite[0] ?? 0);
  const most = finite.reduce((a, b) => Math.max(a, b), finite[0] ?? 0);
  const width = (most - least) / BINS || 1;
  const counts: number[] = new Array(BINS).fill(0);
  let [sum, squares] = [0, 0];
  for (const value of finite) {
    counts[Math.min(BINS - 1, Math.floor((value - least) / width))]!++;
    sum += value;
    squares += value * value;
  }
  const limits = counts.map((_, i) =>
    i === BINS - 1 ? Math.max(most, least + BINS * width) : least + (i + 1) * width,
  );
  return { least, most, count: finite.length, sum, squares, limits, counts };
}
