/** Reads any region of a tensor out of the boxes that hold it: only the bytes it needs, in as few reads as that takes. */

import { bytesPerElement } from "../format/dtype";
import type { SourceBox, SourceTensor } from "../format/source";
import { type Box, intersect } from "../layout/box";
import { SourcePlan } from "../plan/plan";
import { copyBytes, type Run, runsOf } from "../plan/runs";
import { allOf } from "../stores/lanes";
import type { Scratch } from "../stores/scratch";

/** Runs of at least this length are read straight to where they belong. */
const DIRECT = 64 << 10;
/** Reading over a gap of this length costs less than another read. */
const GAP = 32 << 10;
/** Files read at once. */
const LANES = 4;

export class TensorReader {
  readonly #tensor: SourceTensor;
  readonly #plan: SourcePlan;
  readonly #scratch: Scratch;

  constructor(tensor: SourceTensor, scratch: Scratch) {
    this.#tensor = tensor;
    this.#plan = new SourcePlan(tensor, tensor.boxes);
    this.#scratch = scratch;
  }

  /** Fills `target` with `region`, row-major. Throws MISSING before reading where boxes are missing, CORRUPT, IO. */
  async read(region: Box, target: Uint8Array): Promise<void> {
    const width = bytesPerElement(this.#tensor.dtype);
    const queue = this.#plan.sourcesOf(region).map((index) => this.#tensor.boxes[index]!);
    const lane = async (number: number) => {
      const scratch = this.#scratch.lane(number, LANES);
      for (let box = queue.shift(); box; box = queue.shift()) {
        const runs = runsOf(box, region, intersect(box, region)!, width);
        const first = runs.next().value as Run;
        const second = runs.next();
        if (second.done) await box.read(target.subarray(first.to, first.to + first.length), first.from);
        else await scatter(box, again(first, second.value, runs), target, scratch);
      }
    };
    await allOf(Array.from({ length: Math.min(LANES, queue.length) }, (_, number) => lane(number)));
  }

  /** Reads every box that holds a part of `region` from end to end, so that its checksum is compared. */
  async verifyWhole(region: Box): Promise<void> {
    for (const index of this.#plan.sourcesOf(region)) {
      const box = this.#tensor.boxes[index]!;
      for (let start = 0; start < box.byteLength; start += this.#scratch.length) {
        await box.read(this.#scratch.take(Math.min(this.#scratch.length, box.byteLength - start)), start);
      }
    }
  }
}

/** Reads runs that lie near each other at once, and copies each to its place. */
async function scatter(
  box: SourceBox,
  runs: Iterable<Run>,
  target: Uint8Array,
  scratch: () => Uint8Array,
): Promise<void> {
  const room = scratch().length;
  let span: Run[] = [];
  const flush = async () => {
    if (span.length === 0) return;
    const begin = span[0]!.from;
    const last = span.at(-1)!;
    const bytes = scratch().subarray(0, last.from + last.length - begin);
    await box.read(bytes, begin);
    for (const { from, to, length } of span) copyBytes(bytes, from - begin, target, to, length);
    span = [];
  };
  for (const run of runs) {
    if (run.length >= DIRECT || run.length > room) {
      await flush();
      await box.read(target.subarray(run.to, run.to + run.length), run.from);
      continue;
    }
    const [first, last] = [span[0], span.at(-1)];
    const joins = last && run.from - (last.from + last.length) <= GAP;
    if (!joins || run.from + run.length - first!.from > room) await flush();
    span.push(run);
  }
  await flush();
}

function* again(first: Run, second: Run, rest: Iterable<Run>): Generator<Run> {
  yield first;
  yield second;
  yield* rest;
}
