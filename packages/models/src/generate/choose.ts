/** Chooses the next token from logits, as transformers' processors do, in their order. */
import { checkValue, type Generator } from "@opt/core";

export interface ChoiceOptions {
  /** Logits are divided by it before one is drawn. Default 0: the largest one is taken. */
  readonly temperature?: number;
  /** Draws among so many of the largest logits. Default 0: all. */
  readonly topK?: number;
  /** Draws among the most probable tokens that have this probability together. Default 1. */
  readonly topP?: number;
  /** Divides positive logits of tokens that were there, and multiplies negative ones (Keskar et al. 2019). Default 1. */
  readonly repetitionPenalty?: number;
}

/** @throws OptError BAD_ARGUMENT */
export function checkChoice(where: string, options: ChoiceOptions): void {
  const { temperature = 0, topK = 0, topP = 1, repetitionPenalty = 1 } = options;
  const isSize = (x: number) => x >= 0 && x < Number.POSITIVE_INFINITY;
  checkValue(isSize(temperature), where, "temperature", "a number >= 0", temperature);
  checkValue(Number.isInteger(topK) && topK >= 0, where, "topK", "an integer >= 0", topK);
  checkValue(topP > 0 && topP <= 1, where, "topP", "in (0, 1]", topP);
  const isPenalty = isSize(repetitionPenalty) && repetitionPenalty > 0;
  checkValue(isPenalty, where, "repetitionPenalty", "a number > 0", repetitionPenalty);
}

/** The index of the largest logit where the temperature is 0, else a draw. `seen`: the row's tokens so far. */
export function choose(all: Float32Array, seen: Iterable<number>, options: ChoiceOptions, random: Generator): number {
  const { temperature = 0, repetitionPenalty = 1 } = options;
  const logits = repetitionPenalty === 1 ? all : penalized(all, seen, repetitionPenalty);
  if (temperature === 0) return largest(logits);
  const weights = weightsOf(logits, options);
  let left = random.nextFloat("f64") * weights.reduce((a, b) => a + b, 0);
  for (const [i, weight] of weights.entries()) {
    left -= weight;
    if (left < 0) return i;
  }
  return largest(logits);
}

function largest(logits: Float32Array): number {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[best]!) best = i;
  return best;
}

export function penalized(given: Float32Array, seen: Iterable<number>, penalty: number): Float32Array {
  const logits = given.slice();
  for (const i of new Set(seen)) logits[i] = given[i]! > 0 ? given[i]! / penalty : given[i]! * penalty;
  return logits;
}

/** Unnormalized probabilities; 0 where a token is left out. */
export function weightsOf(logits: Float32Array, { temperature = 1, topK = 0, topP = 1 }: ChoiceOptions): Float64Array {
  const sorted = topK > 0 || topP < 1 ? logits.slice().sort().reverse() : logits;
  const most = topK > 0 || topP < 1 ? sorted[0]! : logits[largest(logits)]!;
  const weight = (x: number) => Math.exp((x - most) / temperature);
  let least = topK > 0 ? sorted[Math.min(topK, sorted.length) - 1]! : Number.NEGATIVE_INFINITY;
  if (topP < 1) {
    const kept = sorted.filter((x) => x >= least);
    const enough = topP * kept.reduce((sum, x) => sum + weight(x), 0);
    let sum = 0;
    for (let i = 0; i < kept.length && sum < enough; i++) {
      sum += weight(kept[i]!);
      least = kept[i]!;
    }
  }
  return Float64Array.from(logits, (x) => (x >= least ? weight(x) : 0));
}
