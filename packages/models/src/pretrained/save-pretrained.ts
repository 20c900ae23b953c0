/** Writing models that transformers opens. */
import type { FileSystem } from "@opt/checkpoint";
import { checkOptions, noGrad } from "@opt/core";
import type { ModelConfig } from "../config/config";
import { isTransposed } from "../decoder/gpt2";
import type { LanguageModel } from "../decoder/language-model";
import { Place } from "./place";

export interface SavePretrainedOptions {
  /** Replace a model that is there. Default false. */
  readonly overwrite?: boolean;
  readonly fileSystem?: FileSystem;
}

const ARCHITECTURES: Readonly<Record<ModelConfig["family"], string>> = {
  gpt2: "GPT2LMHeadModel",
  llama: "LlamaForCausalLM",
  qwen2: "Qwen2ForCausalLM",
  qwen3: "Qwen3ForCausalLM",
  gemma3_text: "Gemma3ForCausalLM",
};
const DTYPES: Readonly<Record<string, string>> = { f32: "float32", f64: "float64", f16: "float16", bf16: "bfloat16" };

/**
 * Writes config.json and model.safetensors into a folder, for `fromPretrained` here and in transformers. The config has the fields that it
 * was read with, and the tokenizer that was read with the model comes along.
 *
 * @throws OptError DUPLICATE where a model is, without `overwrite: true`; IO
 * @example
 * const config = { model_type: "gpt2", vocab_size: 50, n_positions: 16, n_embd: 8, n_layer: 1, n_head: 2 };
 * await savePretrained(languageModel(config), "saved");
 */
export async function savePretrained(
  model: LanguageModel,
  folder: string,
  options: SavePretrainedOptions = {},
): Promise<void> {
  checkOptions("savePretrained", options, { overwrite: "boolean", fileSystem: "any" });
  const { overwrite, fileSystem } = options;
  const place = await Place.open(folder, { fileSystem });
  const { config } = model;
  const tensors = Object.fromEntries(model.namedTensors());
  const turned = Object.keys(tensors).filter((name) => isTransposed(config, name));
  for (const name of turned) tensors[name] = noGrad(() => tensors[name]!.transpose(0, 1));
  try {
    const written = { ...config.json, architectures: [ARCHITECTURES[config.family]], dtype: DTYPES[model.dtype] };
    await place.write("model.safetensors", tensors, { ...model.origin?.texts, "config.json": written }, overwrite);
  } finally {
    for (const name of turned) tensors[name]!.dispose();
  }
}
