/** What the docs promise of a run beside one process, and how what it left differs from that. */
import { partOf } from "@opt/core/backend";
import type { Configuration, Phase } from "./configuration";

/** Equal words, numbers within so much of 1 and of the largest of their tensor, or the same tensors alone. */
type Promised = "words" | number | "names";

export interface Outcome {
  readonly losses: readonly (readonly (readonly string[])[])[];
  readonly tensors: Readonly<Record<string, readonly number[]>>;
}

/** Where sums have another order. */
const CLOSE = { f64: 1e-10, f32: 1e-4, bf16: 0.05, f16: 0.05 } as const;
/** Elements of a packed matrix's block, which share a scale. */
const PACKED_BLOCK = 256;
/** `fit` notes the mean of a step's losses in float32. */
const AS_FLOAT32 = 1e-6;

export function promiseOf({ phases, uneven, dtype, width, optimizer, autocast, options }: Configuration): Promised {
  // Ranks whose rows begin inside a block pack others than one process. Rprop steps by the signs of what is packed.
  const isCut = ({ over, data, shardOver = data }: Phase) =>
    over === "FullyShardedDataParallel" &&
    Array.from({ length: shardOver }, (_, rank) => partOf(width, shardOver, rank)).some(
      ([begin]) => (begin * width) % PACKED_BLOCK > 0,
    );
  if (options.stateDType === "q8" && phases.some(isCut)) return optimizer === "Rprop" ? "names" : CLOSE.bf16;
  // A rounding decides which elements of 0 agree, and which basis belongs to equal eigenvalues.
  const isSharp = options.cautious === true || ["GaLore", "Kron", "Shampoo", "SOAP"].includes(optimizer);
  // Rows are added over the ranks, and batches of other sizes weigh, within rounding.
  if (!uneven && phases.every(({ model }) => model === 1)) return "words";
  if (isSharp) return "names";
  return CLOSE[dtype === "f32" && (autocast || options.stateDType) ? "bf16" : dtype];
}

/** The first thing that is not as promised, or null. */
export function difference(given: Outcome, right: Outcome, promised: Promised): string | null {
  const names = [Object.keys(given.tensors), Object.keys(right.tensors)].map((list) => list.sort().join());
  if (names[0] !== names[1]) return `tensors [${names[0]}] must be [${names[1]}]`;
  if (promised === "names") return null;
  for (const [step, ranks] of right.losses.entries())
    for (const [rank, batches] of ranks.entries()) {
      const own = given.losses[step]?.[rank] ?? [];
      if (own[0]?.startsWith("~")) {
        const isClose = agree(
          [Number(own[0].slice(1))],
          [Math.fround(Number(batches[0]))],
          typeof promised === "number" ? Math.max(promised, AS_FLOAT32) : AS_FLOAT32,
        );
        if (batches.length !== 1 || isClose) continue;
      }
      const far = batches.findIndex((loss, i) => !agree([Number(own[i])], [Number(loss)], promised));
      if (far >= 0 || own.length !== batches.length)
        return `step ${step}, rank ${rank}: losses [${own}] must be [${batches}]`;
    }
  for (const [name, numbers] of Object.entries(right.tensors)) {
    const own = given.tensors[name]!;
    if (agree(own, numbers, promised)) continue;
    const at = numbers.findIndex((number, i) => !agree([own[i]!], [number], promised));
    return `${name}[${at}] of ${numbers.length} is ${own[at]}, must be ${numbers[at]}`;
  }
  return null;
}

function agree(own: readonly number[], right: readonly number[], promised: "words" | number): boolean {
  if (promised !== "words") return distance(own, right) <= promised;
  return own.length === right.length && own.every((number, i) => Object.is(number, right[i]));
}

/** Of 1 and of the largest number. Every NaN counts as equal. */
function distance(own: readonly number[], right: readonly number[]): number {
  const scale = Math.max(1, ...right.map(Math.abs).filter(Number.isFinite));
  const far = right.map((number, i) => (Object.is(own[i], number) ? 0 : Math.abs(own[i]! - number) / scale));
  return own.length === right.length && !far.some(Number.isNaN) ? Math.max(0, ...far) : Number.POSITIVE_INFINITY;
}

/**
 * A sum of `width` terms in another order is off by up to so many units in the last place, which an optimizer may raise: LBFGS divides by
 * differences of gradients.
 *
 * @param nudged the right outcome, from weights that begin one such unit away
 */
export function amplified(promised: Promised, { width }: Configuration, right: Outcome, nudged: Outcome): Promised {
  if (typeof promised !== "number") return promised;
  const all = Object.entries(right.tensors).map(([name, numbers]) => distance(nudged.tensors[name]!, numbers));
  return Math.max(promised, width * Math.max(...all.filter(Number.isFinite)));
}
