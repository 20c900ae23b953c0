/** Runs the reads of a plan, several at once. */

import type { Checksum } from "../stores/file-system";
import { allOf } from "../stores/lanes";
import { Scratch } from "../stores/scratch";
import { type FileRead, planReads, type ReadRequest } from "./read-plan";

/** Reads at once. Node reads four at a time; stores behind a network have more on their way. */
const LANES = 8;
/** A lane's memory: a processor's cache holds it while its checksum is taken. */
const ROOM = 2 << 20;

export class ReadPool {
  /** What goes through a lane's own memory may have so many bytes. */
  readonly #room: number;
  readonly #lanes: readonly Scratch[];

  constructor(memory = new Scratch(LANES * ROOM)) {
    this.#lanes = memory.lanes(LANES);
    this.#room = this.#lanes[0]!.length;
  }

  /** Fills all requests. @throws OptError MISSING before reading where boxes are missing, CORRUPT, IO */
  fill(requests: Iterable<ReadRequest>): Promise<void> {
    return this.run((room) => planReads(requests, room));
  }

  /** Runs a plan that is made while it runs; `plan` gets how much may be read through the pool's own memory at once. One at a time. */
  async run(plan: (room: number) => IterableIterator<FileRead>): Promise<void> {
    const reads = plan(this.#room);
    const lane = async (memory: Scratch) => {
      // Where one fails, it ends the plan of all lanes.
      for (const first of reads)
        for (let read: FileRead | undefined = first; read; read = read.next) await one(read, memory);
    };
    await allOf(this.#lanes.map(lane));
  }
}

async function one(read: FileRead, memory: Scratch): Promise<void> {
  const bytes = read.into ?? memory.take(read.length);
  const sum: Checksum | undefined = read.isSummed ? {} : undefined;
  try {
    await read.file.read(bytes, read.position, sum);
  } catch (error) {
    for (const again of read.failed(error)) await one(again, memory);
    return;
  }
  read.take(bytes, sum?.crc32);
}
