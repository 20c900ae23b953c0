/** Cheap results are computed again before their late readers, in place of being kept, until temporaries fit into a budget. */
import { outputsOf, readsOf, withSlices } from "../../backend/launches";
import type { Memory, Slice } from "../../backend/memory";
import type { Launch } from "../../backend/spec";
import { denseStrides } from "../../values/shape";
import { mergeDimensions } from "../../values/strides";
import type { Step } from "../steps";
import type { MapKernels } from "./fuse-maps";
import { lifetimes, type OptimizedTrace, plan } from "./memory-plan";
import { Uses } from "./uses";

/** A launch that is repeated: it frees bytes of its results between two steps. */
interface Repetition {
  readonly launch: Launch;
  readonly at: number;
  /** The results, and who reads them after the peak. */
  readonly results: ReadonlySet<Memory>;
  readonly readers: readonly number[];
  readonly saved: number;
  readonly work: number;
}

/** Fits as well as it can: where it can't, `arenaBytes` is more than `budget`. */
export function fitMemory(
  given: readonly Step[],
  known: ReadonlySet<Memory>,
  budget: number,
  kernels: MapKernels,
): OptimizedTrace {
  const temporaries = new Set(known);
  const repeated = new Set<Memory>();
  for (let steps = given; ; ) {
    const planned = plan(steps, temporaries, true);
    const next =
      planned.arenaBytes > budget
        ? withRepetitions(steps, planned.arenaBytes - budget, temporaries, repeated, kernels)
        : steps;
    if (next === steps) return { steps, ...planned };
    steps = next;
  }
}

/** The steps with as many repetitions as free so many bytes at the peak; the same list where nothing frees any. */
function withRepetitions(
  steps: readonly Step[],
  excess: number,
  temporaries: Set<Memory>,
  repeated: Set<Memory>,
  kernels: MapKernels,
): readonly Step[] {
  const uses = new Uses(steps, temporaries);
  const lives = lifetimes(steps, temporaries);
  const bytes = new Float64Array(steps.length);
  for (const life of lives.values()) for (let i = life.first; i <= life.last; i++) bytes[i]! += life.bytes;
  const peak = bytes.indexOf(Math.max(...bytes));

  const repetitionOf = (index: number): Repetition | undefined => {
    const step = uses.at(index);
    const launch = step?.kind === "launch" ? repeatable(step.launch, kernels) : undefined;
    if (launch === undefined) return undefined;
    const results = new Set(outputsOf(launch).map(({ memory }) => memory));
    const isOwn = (memory: Memory) =>
      temporaries.has(memory) && !repeated.has(memory) && uses.writers(memory).length === 1;
    if (![...results].every(isOwn)) return undefined;
    const readers = [...results].flatMap((memory) => uses.readers(memory)).filter((reader) => reader > peak);
    const first = Math.min(...readers);
    const inputs = [...readsOf(launch)];
    if (
      readers.length === 0 ||
      inputs.some((input) => results.has(input) || uses.isWrittenBetween(input, index, first))
    )
      return undefined;
    const sumOf = (memories: readonly Memory[]) => memories.reduce((sum, memory) => sum + lives.get(memory)!.bytes, 0);
    const kept = inputs.filter((input) => (lives.get(input)?.last ?? peak) < peak);
    const freed = [...results].filter(
      (memory) => lives.get(memory)!.last > peak && !uses.readers(memory).includes(peak),
    );
    const work = outputsOf(launch).reduce((sum, { length }) => sum + length, 0) * operationsOf(launch);
    return { launch, at: index, results, readers, saved: sumOf(freed) - sumOf(kept), work };
  };

  const found: Repetition[] = [];
  for (let index = 0; index < peak; index++) {
    const repetition = repetitionOf(index);
    if (repetition && repetition.saved > 0) found.push(repetition);
  }
  const taken: Repetition[] = [];
  let left = excess;
  for (const one of found.sort((a, b) => b.saved / b.work - a.saved / a.work)) {
    if (left <= 0) break;
    // What one needs another must not free in the same round.
    const needs = ({ launch }: Repetition, { results }: Repetition) =>
      [...readsOf(launch)].some((memory) => results.has(memory));
    if (taken.some((other) => needs(one, other) || needs(other, one))) continue;
    taken.push(one);
    left -= one.saved;
  }
  if (taken.length === 0) return steps;
  const before = new Map<number, Step[]>();
  for (const { launch, results, readers } of taken) {
    const again = new Map([...results].map((memory) => [memory, { bytes: memory.bytes }]));
    for (const memory of again.values()) {
      temporaries.add(memory);
      repeated.add(memory);
    }
    const moved = (slice: Slice): Slice => ({ ...slice, memory: again.get(slice.memory) ?? slice.memory });
    const first = Math.min(...readers);
    const step: Step = { kind: "launch", launch: withSlices(launch, moved), scalarSource: undefined };
    before.set(first, [...(before.get(first) ?? []), step]);
    for (const reader of new Set(readers)) {
      const present = uses.at(reader) as Extract<Step, { kind: "launch" }>; // host code would count as a writer
      uses.replace(reader, { ...present, launch: withSlices(present.launch, moved) });
    }
  }
  return uses.steps.flatMap((step, index) => [...(before.get(index) ?? []), step]);
}

/** What gives the same results again at little cost: elementwise programs, those of rows, norms and casts. */
function repeatable(launch: Launch, kernels: MapKernels): Launch | undefined {
  const { kind } = launch;
  if (kind === "map" || kind === "rows" || kind === "copy") return launch;
  if (kind === "batchNorm" || kind === "groupNorm") return launch;
  if (kind !== "matmul" || launch.epilogue?.product === undefined) return undefined;
  // Its epilogue alone, as the product is there.
  const { product, operands, strides, scalars } = launch.epilogue;
  const extents = [launch.batch, launch.m, launch.n];
  const dense = denseStrides(extents);
  const merged = mergeDimensions(extents, [dense, ...strides, dense]);
  return {
    kind: "map",
    kernel: kernels(launch.kernel.spec.epilogue!, launch.kernel.spec.dtype),
    inputs: [product, ...operands],
    output: launch.output,
    scalars,
    shape: merged.shape,
    strides: merged.strides.slice(0, -1),
  };
}

/** About how many operations an element takes. */
function operationsOf(launch: Launch): number {
  return launch.kind === "map" || launch.kind === "rows" ? launch.kernel.spec.program.nodes.length : 1;
}
