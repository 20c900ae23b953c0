/** A base to fine-tune where none is given: a small GPT-2, trained on a text by characters and written as Hugging Face's are. */

import { AdamW } from "@opt/adam-amsgrad";
import { compile, type Device, Generator, type Tensor } from "@opt/core";
import { DataLoader, Windows } from "@opt/data";
import { crossEntropy, normal } from "@opt/nn";
import { Gpt } from "@opt-e2e/tiny-gpt";

export interface BaseOptions {
  readonly device: Device;
  readonly tokens: Int32Array;
  readonly steps: number;
  readonly width: number;
  readonly length: number;
  readonly blocks: number;
  readonly heads: number;
  readonly seed: number;
}

/** Tokens are characters' codes: ASCII. */
export const TOKENS = 128;

export function encode(text: string): Int32Array {
  return Int32Array.from(text, (character) => Math.min(character.charCodeAt(0), TOKENS - 1));
}

export function decode(tokens: readonly number[]): string {
  return String.fromCharCode(...tokens);
}

/** Trains a base. The loss of each step goes to `report`, and is freed after it. */
export async function trainBase(
  { device, tokens, steps, seed, ...sizes }: BaseOptions,
  report?: (step: number, loss: Tensor) => void | Promise<void>,
): Promise<Gpt> {
  const generator = new Generator(seed);
  const model = new Gpt({ ...sizes, tokens: TOKENS, gpt2: true, generator, device });
  // The tied table is GPT-2's: with deviation 1 its logits would begin far too large.
  for (const table of [model.tok.weight, model.pos.weight]) normal(table, 0, 0.02, { generator });
  const optimizer = new AdamW(model.namedParameters(), { lr: 3e-3, weightDecay: 0.1, clip: { norm: 1 } });
  const windows = new Windows(tokens, { length: sizes.length });
  const loader = new DataLoader(windows, { batchSize: 16, shuffle: true, dropLast: true, generator });
  const trainOn = compile((input: Tensor, target: Tensor) => {
    const loss = crossEntropy(model.forward(input), target);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  });
  for (let step = 0; step < steps; ) {
    for (const [input, target] of loader) {
      const loss = trainOn(input, target);
      step++;
      await report?.(step, loss);
      loss.dispose();
      if (step === steps) break;
    }
  }
  trainOn.dispose();
  optimizer.dispose();
  return model;
}
