/** Text after a prompt, piece by piece. */
import { checkOptions, checkValue } from "@opt/core";
import type { LanguageModel } from "../decoder/language-model";
import type { Message, Tokenizer } from "../tokenizer/tokenizer";
import { GENERATE_OPTIONS, type GenerateTokensOptions, generateTokens } from "./generate-tokens";
import { Pieces } from "./pieces";

export interface GenerateOptions extends GenerateTokensOptions {
  /** Texts that end the answer; they are not given out. Default none. */
  readonly stop?: readonly string[];
}

/**
 * The text after a prompt, or the answer in a conversation, piece by piece. No piece ends within a character. Without `ends` the
 * tokenizer's end it. For several prompts at once see `generateTokens`.
 *
 * @throws OptError BAD_ARGUMENT; UNSUPPORTED for messages where the tokenizer has no template, or `@huggingface/jinja` is not installed
 * @example
 * const tokenizer = {
 *   encode: (text) => Array.from(text, (character) => character.charCodeAt(0)),
 *   decode: (tokens) => String.fromCharCode(...tokens),
 * };
 * const json = { model_type: "gpt2", vocab_size: 128, n_positions: 16, n_embd: 8, n_layer: 1, n_head: 2 };
 * const model = languageModel(json, { generator: new Generator(1) });
 * for await (const piece of generate(model, tokenizer, "Once", { maxTokens: 4 })) console.log(piece);
 */
export async function* generate(
  model: LanguageModel,
  tokenizer: Tokenizer,
  prompt: string | readonly Message[],
  options: GenerateOptions = {},
): AsyncGenerator<string, void, undefined> {
  checkOptions("generate", options, { ...GENERATE_OPTIONS, stop: "any" });
  const { stop = [], ends, ...rest } = options;
  const isStop = Array.isArray(stop) && stop.every((word) => typeof word === "string" && word !== "");
  checkValue(isStop, "generate", "stop", "a list of texts that are not empty", stop);
  const cure = "Folders with a tokenizer.json have one.";
  checkValue(typeof tokenizer?.encode === "function", "generate", "the tokenizer", "one with encode", tokenizer, cure);
  const isText = typeof prompt === "string";
  checkValue(isText || Array.isArray(prompt), "generate", "the prompt", "a text or a list of messages", prompt);
  const template = tokenizer.applyChatTemplate?.bind(tokenizer);
  checkValue(isText || template, "generate", "the tokenizer", "one with applyChatTemplate for messages", tokenizer);
  const text = isText ? prompt : await template!(prompt, { addGenerationPrompt: true });
  const tokens = tokenizer.encode(text, isText ? {} : { special: false });
  const pieces = new Pieces(tokenizer, tokens, stop);
  for await (const [token] of generateTokens(model, [tokens], { ends: ends ?? tokenizer.ends, ...rest })) {
    const piece = pieces.next(token!);
    if (piece !== "") yield piece;
    if (pieces.isStopped) return;
  }
  const end = pieces.next(null);
  if (end !== "") yield end;
}
