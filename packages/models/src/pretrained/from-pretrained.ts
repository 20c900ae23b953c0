/** Reading models that transformers wrote. */
import type { OpenFolderOptions } from "@opt/checkpoint";
import { check, checkOptions, type Device, type DType, noGrad, type Tensor, tidy } from "@opt/core";
import { type Quantization, quantize } from "../adapters/quantize";
import { unsupported } from "../check";
import { type ModelConfig, readConfig } from "../config/config";
import type { ConfigJson } from "../config/fields";
import { LanguageModel } from "../decoder/language-model";
import { openTokenizer } from "../tokenizer/library";
import type { Tokenizer } from "../tokenizer/tokenizer";
import { isTransposed } from "./names";
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
 * @throws OptError MISSING, UNSUPPORTED (also where the library of tokenizers is not installed), BAD_SHAPE, CORRUPT, IO
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
  const sizes = new Map([...source.tensors].map(([name, { shape }]) => [name, 4 * shape.reduce((a, b) => a * b, 1)]));
  await source.close();
  const own = placesOf(file, model, sizes);
  const total = [...own.values()].reduce((sum, name) => sum + sizes.get(name)!, 0);
  let done = 0;
  for (const names of portions(own, sizes)) {
    const { tensors } = await loadCheckpoint(file, { names: names.map((name) => own.get(name)!), fileSystem });
    tidy(() => {
      const stored = names.map((name) => [name, tensors[own.get(name)!]!] as const);
      const turned = ([name, each]: (typeof stored)[number]) =>
        isTransposed(model.config, name) ? [name, each.transpose(0, 1)] : [name, each];
      noGrad(() => model.loadStateDict(Object.fromEntries(stored.map(turned)), { strict: false }));
    });
    for (const tensor of Object.values(tensors)) tensor.dispose();
    done += names.reduce((sum, name) => sum + sizes.get(own.get(name)!)!, 0);
    progress?.(done, total);
  }
}

/** The file's name of each tensor. @throws OptError MISSING, UNSUPPORTED */
function placesOf(file: string, model: LanguageModel, stored: ReadonlyMap<string, number>): Map<string, string> {
  const own = new Map(
    model.namedTensors().map(([name]) => [name, stored.has(name) ? name : name.replace(PREFIX, "")] as const),
  );
  const lacking = [...own].find(([, name]) => !stored.has(name))?.[0];
  const cure = "Look at its config.json.";
  check(lacking === undefined, "MISSING", file, () => `it must have the tensor ${lacking}.`, cure);
  const used = new Set(own.values());
  const isIdle = (name: string) =>
    used.has(name) || IDLE.test(name) || (model.config.tied && name === "lm_head.weight");
  const other = [...stored.keys()].find((name) => !isIdle(name));
  if (other !== undefined) unsupported(file, `the model has no place for the tensor ${other}.`);
  return own;
}

function* portions(own: ReadonlyMap<string, string>, sizes: ReadonlyMap<string, number>): Generator<string[]> {
  let [portion, bytes] = [[] as string[], 0];
  for (const [name, stored] of own) {
    portion.push(name);
    bytes += sizes.get(stored)!;
    if (bytes < PORTION) continue;
    yield portion;
    [portion, bytes] = [[], 0];
  }
  if (portion.length > 0) yield portion;
}
