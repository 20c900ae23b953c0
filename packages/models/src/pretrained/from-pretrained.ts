/** Reading models that transformers wrote. */
import type { OpenFolderOptions } from "@opt/checkpoint";
import { check, checkOptions, type Device, type DType, noGrad, tidy } from "@opt/core";
import { type Quantization, quantize } from "../adapters/quantize";
import { unsupported } from "../check";
import { type ModelConfig, readConfig } from "../config/config";
import type { ConfigJson } from "../config/fields";
import { isTransposed } from "../decoder/gpt2";
import { LanguageModel } from "../decoder/language-model";
import { openTokenizer } from "../tokenizer/library";
import type { Tokenizer } from "../tokenizer/tokenizer";
import { OPENING, Place } from "./place";

export interface FromPretrainedOptions extends OpenFolderOptions {
  /** Default: the one of `init`. */
  readonly device?: Device | string;
  /** Of the weights, whatever the file has. Default f32. */
  readonly dtype?: DType;
  /** Keeps the weights of linear layers in 8 or 4 bits, for adapters on top: see `quantize`. Default: as they are. */
  readonly quantize?: Quantization;
  /** False leaves the tokenizer out, and needs no library for it. Default true, where the folder has a tokenizer.json. */
  readonly tokenizer?: boolean;
  /** Called with the bytes of tensors read so far, of how many. */
  readonly progress?: (done: number, total: number) => void;
}

/** What `fromPretrained` reads. */
export interface Pretrained {
  readonly model: LanguageModel;
  readonly tokenizer: Tokenizer | null;
  readonly config: ModelConfig;
}

const FILES = ["model.safetensors", "pytorch_model.bin"].flatMap((name) => [`${name}.index.json`, name]);
/** Files of a trunk without its head leave this out. */
const PREFIX = /^(transformer|model)\./;
/** What older files have beside the weights: masks, and tables of positions. */
const IDLE = /\.attn\.(masked_)?bias$|rotary_emb\.inv_freq$/;
/** Tensors of so many bytes are in memory twice at a time. */
const PORTION = 64 * 2 ** 20;

/**
 * Reads a model and its tokenizer from a folder with config.json and safetensors: a path, `https://...`, or `hf://owner/name[@revision]`.
 * Options `cache`, `token`, `endpoint` and `signal` are those of `loadCheckpoint`. A missing tensor and one that has no place here throw.
 *
 * @throws OptError MISSING, UNSUPPORTED (also where the library of tokenizers is not installed), BAD_STATE (shapes), CORRUPT, IO
 * @example
 * const config = { model_type: "gpt2", vocab_size: 50, n_positions: 16, n_embd: 8, n_layer: 1, n_head: 2 };
 * await savePretrained(languageModel(config), "tiny");
 * const { model } = await fromPretrained("tiny", { device: "js" });
 */
export async function fromPretrained(path: string, options: FromPretrainedOptions = {}): Promise<Pretrained> {
  checkOptions("fromPretrained", options, {
    ...{ device: ["string", "object"], dtype: "string", quantize: "string", tokenizer: "boolean" },
    ...{ ...OPENING, progress: "function" },
  });
  const { device, dtype = "f32", quantize: quantization, tokenizer: isWanted = true, progress, ...opening } = options;
  const place = await Place.open(path, opening);
  const config = readConfig(await place.json<ConfigJson>("config.json"));
  const tokenizer = isWanted && (await place.has("tokenizer.json")) ? await openTokenizer(place) : null;
  const model = new LanguageModel(config, { dtype, ...(device !== undefined && { device }) });
  model.origin = { path, texts: place.texts };
  try {
    await fill(model, place, progress);
    if (quantization !== undefined) await quantize(model, quantization);
  } catch (error) {
    for (const parameter of model.parameters()) parameter.dispose();
    throw error;
  }
  return { model, tokenizer, config };
}

async function fill(model: LanguageModel, place: Place, progress?: FromPretrainedOptions["progress"]): Promise<void> {
  const { loadCheckpoint, openSource } = await import("@opt/checkpoint");
  const { fileSystem } = place;
  let file: string | undefined;
  for (const name of FILES) if (file === undefined && (await place.has(name))) file = place.under(name);
  const problem = () => `the folder must have one of ${FILES.join(", ")}.`;
  check(file !== undefined, "MISSING", place.under(""), problem, "Look at the path.");
  const source = await openSource(file, { fileSystem });
  const stored = new Map([...source.tensors].map(([name, { shape }]) => [name, shape]));
  await source.close();
  const places = placesOf(file, model, stored);
  const total = places.reduce((sum, { bytes }) => sum + bytes, 0);
  for (let [first, next, done] = [0, 0, 0]; first < places.length; first = next) {
    for (const end = done + PORTION; next < places.length && done < end; next++) done += places[next]!.bytes;
    const portion = places.slice(first, next);
    const { tensors } = await loadCheckpoint(file, { names: portion.map(({ from }) => from), fileSystem });
    tidy(() => {
      const own = portion.map(({ name, from }) => {
        const tensor = tensors[from]!;
        return [name, isTransposed(model.config, name) ? tensor.transpose(0, 1) : tensor];
      });
      noGrad(() => model.loadStateDict(Object.fromEntries(own), { strict: false }));
    });
    for (const tensor of Object.values(tensors)) tensor.dispose();
    progress?.(done, total);
  }
}

/** Where the file has each tensor. @throws OptError MISSING, BAD_STATE, UNSUPPORTED */
function placesOf(file: string, model: LanguageModel, stored: ReadonlyMap<string, readonly number[]>) {
  const places = model.namedTensors().map(([name, { shape: own, size }]) => {
    const from = stored.has(name) ? name : name.replace(PREFIX, "");
    const shape = isTransposed(model.config, name) ? own.toReversed() : own;
    const found = stored.get(from);
    const problem = () => `it must have the tensor ${name} [${shape}], got ${found ? `[${found}]` : "none"}.`;
    check(String(found) === String(shape), found ? "BAD_STATE" : "MISSING", file, problem, "Look at its config.json.");
    return { name, from, bytes: 4 * size };
  });
  const used = new Set(places.map(({ from }) => from));
  const isIdle = (name: string) =>
    used.has(name) || IDLE.test(name) || (model.config.tied && name === "lm_head.weight");
  const other = [...stored.keys()].find((name) => !isIdle(name));
  if (other !== undefined) unsupported(file, `the model has no place for the tensor ${other}.`);
  return places;
}
