/** Tokenizers and chat templates by Hugging Face's libraries, which are loaded when they are used. */
import { OptError } from "@opt/core";
import { unsupported } from "../check";
import type { Place } from "../pretrained/place";
import type { Message, Tokenizer } from "./tokenizer";

interface TokenizerConfig {
  readonly chat_template?: string | readonly { readonly name: string; readonly template: string }[];
  readonly [name: string]: unknown;
}

const PLAIN = { skip_special_tokens: true, clean_up_tokenization_spaces: false };

/** The library, or how to install it. @throws OptError UNSUPPORTED */
async function loaded<T>(name: string, library: Promise<T>): Promise<T> {
  try {
    return await library;
  } catch (cause) {
    const problem = `needs ${name}, which is not installed.`;
    throw new OptError("UNSUPPORTED", "tokenizer", problem, `npm i ${name}`, { cause });
  }
}

/** The tokenizer of a folder. @throws OptError UNSUPPORTED, CORRUPT, IO */
export async function openTokenizer(place: Place): Promise<Tokenizer> {
  const optional = async <T>(name: string): Promise<T | undefined> =>
    (await place.has(name)) ? place.json<T>(name) : undefined;
  const json = await place.json<object>("tokenizer.json");
  const config = (await optional<TokenizerConfig>("tokenizer_config.json")) ?? {};
  const generation = await optional<{ eos_token_id?: number | number[] | null }>("generation_config.json");
  const file = "chat_template.jinja";
  const template = (await place.has(file)) ? await place.text(file) : templateOf(config);
  const library = await loaded("@huggingface/tokenizers", import("@huggingface/tokenizers"));
  const tokenizer = new library.Tokenizer(json, config);

  const end = textOf(config.eos_token);
  const endOfConfig = end === undefined ? undefined : tokenizer.token_to_id(end);
  const ends = new Set([generation?.eos_token_id ?? [], endOfConfig ?? []].flat());
  return {
    ends: [...ends],
    encode: (text, { special = true } = {}) => tokenizer.encode(text, { add_special_tokens: special }).ids,
    decode: (tokens) => (tokens.length === 0 ? "" : tokenizer.decode([...tokens], PLAIN)),
    async applyChatTemplate(messages, { addGenerationPrompt } = { addGenerationPrompt: false }) {
      if (template === undefined)
        unsupported("tokenizer", "the tokenizer has no chat template.", "Write the prompt as a text.");
      const { Template } = await loaded("@huggingface/jinja", import("@huggingface/jinja"));
      const tokens = Object.entries(config).map(([name, value]) => [name, textOf(value)]);
      const named = Object.fromEntries(tokens.filter(([name]) => name!.endsWith("_token")));
      const turns = { messages: messages as Message[], add_generation_prompt: addGenerationPrompt };
      return new Template(template).render({ ...named, ...turns });
    },
  };
}

function templateOf({ chat_template: template }: TokenizerConfig): string | undefined {
  if (typeof template === "string" || template === undefined) return template;
  return template.find(({ name }) => name === "default")?.template;
}

/** A special token is a text, or an object that has it. */
function textOf(token: unknown): string | undefined {
  if (typeof token === "string") return token;
  return (token as { content?: string } | null | undefined)?.content;
}
