/** A base to fine-tune where none is given: a small GPT-2, trained on a text by characters and written as Hugging Face's are. */

import { AdamW } from "@opt/adam-amsgrad";
import { type Device, Generator } from "@opt/core";
import { DataLoader, Windows } from "@opt/data";
import { crossEntropy, normal } from "@opt/nn";
import { type Callback, fit } from "@opt/train";
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
const TOKENS = 128;

export function encode(text: string): Int32Array {
  return Int32Array.from(text, (character) => Math.min(character.charCodeAt(0), TOKENS - 1));
}

export function decode(tokens: readonly number[]): string {
  return String.fromCharCode(...tokens);
}

export async function trainBase(
  { device, tokens, steps, seed, ...sizes }: BaseOptions,
  callbacks: readonly Callback[] = [],
): Promise<Gpt> {
  const generator = new Generator(seed);
  const model = new Gpt({ ...sizes, tokens: TOKENS, gpt2: true, generator, device });
  // The tied table is GPT-2's: with deviation 1 its logits would begin far too large.
  for (const table of [model.tok.weight, model.pos.weight]) normal(table, 0, 0.02, { generator });
  const optimizer = new AdamW(model.namedParameters(), { lr: 3e-3, weightDecay: 0.1, clip: { norm: 1 } });
  const windows = new Windows(tokens, { length: sizes.length });
  const data = new DataLoader(windows, { batchSize: 16, shuffle: true, dropLast: true, generator });
  const last: Callback = {
    onStepEnd({ step }, control) {
      control.stop = step === steps;
    },
  };
  const epochs = Math.ceil(steps / data.length);
  await fit(model, { data, loss: crossEntropy, optimizer, epochs, callbacks: [last, ...callbacks] });
  optimizer.dispose();
  return model;
}
