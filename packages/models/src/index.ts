/** `@opt/models`: language models that are read, taught, asked and written. */

export { type CacheOptions, KeyValueCache, type Slots } from "./attention/cache";
export type { PassOptions } from "./attention/passing";
export { type ModelConfig, readConfig } from "./config/config";
export type { ConfigJson } from "./config/fields";
export type { Rope } from "./config/rope";
export { type LanguageModel, type LanguageModelOptions, languageModel } from "./decoder/language-model";
export type { WeightOptions } from "./decoder/parts";
export type { ChoiceOptions } from "./generate/choose";
export { type GenerateOptions, generate } from "./generate/generate";
export { type GenerateTokensOptions, generateTokens } from "./generate/generate-tokens";
export { type FromPretrainedOptions, fromPretrained, type Pretrained } from "./pretrained/from-pretrained";
export { type SavePretrainedOptions, savePretrained } from "./pretrained/save-pretrained";
export type { Message, Tokenizer } from "./tokenizer/tokenizer";
