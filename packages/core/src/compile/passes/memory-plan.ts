/** One block of memory for all temporaries: those that do not live at the same time share bytes. */

import { memoriesOf } from "../../backend/launches";
import type { Memory } from "../../backend/memory";
import { staggeredBytes } from "../../backend/stagger";
import type { Step } from "../steps";

/** What WebGPU asks of the offset of a binding; also whole cache lines. */
const ALIGNMENT = 256;

/** What is left of a trace after its passes. */
export interface OptimizedTrace {
  readonly steps: readonly Step[];
  /** Where temporaries are in one block of memory. */
  readonly offsets: ReadonlyMap<Memory, number>;
  readonly arenaBytes: number;
}

interface Interval {
  readonly memory: Memory;
  readonly bytes: number;
  first: number;
  last: number;
}

/** The offset of each temporary. Without `shares` none has bytes of another. */
export function plan(
  steps: readonly Step[],
  temporaries: ReadonlySet<Memory>,
  shares: boolean,
): { offsets: ReadonlyMap<Memory, number>; arenaBytes: number } {
  const intervals = [...lifetimes(steps, temporaries).values()];
  const offsets = new Map<Memory, number>();
  /** By offset. */
  const placed: { interval: Interval; offset: number }[] = [];
  let arenaBytes = 0;
  // Large ones first: small ones then fill the gaps.
  for (const interval of intervals.sort((a, b) => b.bytes - a.bytes || a.first - b.first)) {
    let offset = 0;
    for (const other of placed) {
      const { first, last, bytes } = other.interval;
      if (shares && (first > interval.last || interval.first > last)) continue;
      if (other.offset - offset >= interval.bytes) break;
      offset = Math.max(offset, other.offset + bytes);
    }
    const after = placed.findIndex((other) => other.offset > offset);
    placed.splice(after < 0 ? placed.length : after, 0, { interval, offset });
    offsets.set(interval.memory, offset);
    arenaBytes = Math.max(arenaBytes, offset + interval.bytes);
  }
  return { offsets, arenaBytes };
}

/** From the first step that touches a temporary to the last. Host data is written before all launches since the last host code. */
export function lifetimes(steps: readonly Step[], temporaries: ReadonlySet<Memory>): Map<Memory, Interval> {
  const intervals = new Map<Memory, Interval>();
  let segment = 0;
  steps.forEach((step, index) => {
    const touch = (memory: Memory, first: number) => {
      if (!temporaries.has(memory)) return;
      const known = intervals.get(memory);
      if (known === undefined) {
        const bytes = staggeredBytes(Math.ceil(memory.bytes / ALIGNMENT) * ALIGNMENT);
        intervals.set(memory, { memory, bytes, first, last: index });
      } else {
        known.first = Math.min(known.first, first);
        known.last = index;
      }
    };
    if (step.kind === "launch") for (const memory of memoriesOf(step.launch)) touch(memory, index);
    else if (step.kind === "write") touch(step.slice.memory, segment);
    else {
      for (const { memory } of step.views) touch(memory, index);
      segment = index;
    }
  });
  return intervals;
}
