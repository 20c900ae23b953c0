/** The tiny models of families.py: weights by a formula of their names. */
import { readFileSync } from "node:fs";
import { type Device, init, type Tensor, tensor, tidy } from "@opt/core";
import { isTransposed } from "../src/decoder/gpt2";
import { type ConfigJson, type LanguageModel, languageModel } from "../src/index";

export interface Golden {
  readonly config: ConfigJson;
  /** Of `TOKENS`, by transformers. */
  readonly logits: Float32Array;
  /** 64 tokens after each of `PROMPTS`; none for dynamic scaling. */
  readonly greedy: readonly (readonly number[])[];
}

export const TOKENS = Array.from({ length: 24 }, (_, i) => (7 * i * i + 13 * i) % 61);
export const PROMPTS = [3, 11, 7].map((length) => TOKENS.slice(0, length));

const text = readFileSync(new URL("goldens.json", import.meta.url), "utf8");
const stored = JSON.parse(text) as Record<string, Omit<Golden, "logits"> & { logits: string }>;

export const goldens: ReadonlyMap<string, Golden> = new Map(
  Object.entries(stored).map(([name, golden]) => [
    name,
    { ...golden, logits: Float32Array.from(golden.logits.split(" "), Number) },
  ]),
);

function weightsOf(name: string, { size }: Tensor): Float32Array {
  const hash = [...name].reduce((sum, character) => (Math.imul(sum, 31) + character.charCodeAt(0)) >>> 0, 0);
  const isNorm = /norm|ln_/.test(name);
  const factor = isNorm ? 0.25 : /wte|wpe|embed_tokens/.test(name) ? 0.125 : 1;
  return Float32Array.from({ length: size }, (_, i) => {
    const first = (Math.imul(i, 2654435761) + hash) >>> 0;
    const number = (Math.imul(first, 1103515245) + 12345) >>> 0;
    return (number / 2 ** 31 - 1) * factor + (isNorm ? 1 : 0);
  });
}

/** A family's tiny model. */
export async function tiny(name: string, device: Device | string): Promise<LanguageModel> {
  await init(typeof device === "string" ? device : device.name);
  const model = languageModel(goldens.get(name)!.config, { device });
  for (const [key, weight] of model.namedTensors()) {
    const values = weightsOf(key, weight);
    const [rows, columns] = weight.shape as [number, number];
    const asStored = () => tensor(values, { shape: [columns, rows], device }).transpose(0, 1);
    tidy(() => void weight.detach().set(isTransposed(model.config, key) ? asStored() : values));
  }
  return model;
}
