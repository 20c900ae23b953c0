/** `@opt/models`: language models that are read, taught, asked and written. */

export type { Target } from "./adapters/linear-layers";
export { type LoraOptions, lora, merge, unmerge } from "./adapters/lora";
export { type LoadAdapterOptions, loadAdapter, type SaveAdapterOptions, saveAdapter } from "./adapters/peft-files";
export { type Quantization, type QuantizeOptions, quantize } from "./adapters/quantize";
export { type CacheOptions, KeyValueCache, type Slots } from "./attention/cache";
export type { PassOptions } from "./attention/passing";
export { type ModelConfig, readConfig } from "./config/config";
export type { ConfigJson } from "./config/fields";
export type { Rope } from "./config/rope";
export { causalLoss } from "./data/causal-loss";
export { type ChatDatasetOptions, type ChatTokenizer, chatDataset } from "./data/chat-dataset";
export { type TextDatasetOptions, textDataset } from "./data/text-dataset";
export type { TextTokenizer, TokenDataset } from "./data/token-rows";
export { type LanguageModel, type LanguageModelOptions, languageModel } from "./decoder/language-model";
export type { WeightOptions } from "./decoder/parts";
export type { ChoiceOptions } from "./generate/choose";
export { type GenerateOptions, generate } from "./generate/generate";
export { type GenerateTokensOptions, generateTokens } from "./generate/generate-tokens";
export { type FitsInOptions, fitsIn, type MemoryPlan, type PlannedModel, type PlannedOptimizer } from "./plan/fits-in";
export { type FromPretrainedOptions, fromPretrained, type Pretrained } from "./pretrained/from-pretrained";
export { type SavePretrainedOptions, savePretrained } from "./pretrained/save-pretrained";
export type { Message, Tokenizer } from "./tokenizer/tokenizer";
