/** Sums of ranges of any lengths, or maxima: chunks of all of them are shared out, and their results are combined by range in order. */

import type { Slice } from "@opt/core/backend";
import { type Callable, f64, i32, type ModuleBuilder } from "../../assembler";
import type { Execution } from "../../kernel";
import { type Float, narrow } from "../float";
import { CHUNK } from "./sum";

/** Adds the exports that `runSegments` calls. `foldOf` gives the result of one chunk. */
export function emitSegments(
  module: ModuleBuilder,
  float: Float,
  foldOf: Callable<readonly ["i32", "i32"], "f64">,
  combine: "add" | "max" = "add",
): void {
  // `segments` holds an address and a count for each item.
  module.items("segments", ["i32", "i32"], (f, item, segments, partials) => {
    const segment = f.local("i32", i32.add(segments, i32.mul(item, 8)));
    const folded = foldOf(i32.load(segment), i32.load(segment, 4));
    f.do(f64.store(i32.add(partials, i32.mul(item, 8)), folded));
  });

  // Range r owns the partial results firsts[r] to firsts[r + 1].
  module.items("combine", ["i32", "i32", "i32", "f64"], (f, range, firsts, partials, output, divisor) => {
    const item = f.local("i32");
    const total = f.local("f64", combine === "max" ? Number.NEGATIVE_INFINITY : 0);
    const first = f.local("i32", i32.add(firsts, i32.mul(range, 4)));
    const last = f.local("i32", i32.load(first, 4));
    f.for(item, i32.load(first), last, 1, () => {
      f.set(total, f64[combine](total, f64.load(i32.add(partials, i32.mul(item, 8)))));
    });
    const to = i32.add(output, i32.mul(range, float.bytes));
    f.do(float.scalar.store(to, narrow(float, f64.div(total, divisor))));
  });
}

/** `ranges`: address and length of each; `bytes`: of an element as it is stored there. Each result is divided by `divisor`. */
export function runSegments(
  execution: Execution,
  ranges: readonly (readonly [address: number, length: number])[],
  bytes: number,
  output: Slice,
  divisor: number,
): void {
  const segments: number[] = [];
  const firsts = [0];
  let work = 0;
  for (const [address, length] of ranges) {
    for (let i = 0; i < length; i += CHUNK) segments.push(address + i * bytes, Math.min(CHUNK, length - i));
    firsts.push(segments.length / 2);
    work += length;
  }
  const range = segments.length / 2;
  const partials = execution.scratch(8 * range);
  execution.run("segments", { range, work }, execution.table(segments), partials);
  const split = { range: ranges.length, work: range };
  execution.run("combine", split, execution.table(firsts), partials, output, divisor);
}
