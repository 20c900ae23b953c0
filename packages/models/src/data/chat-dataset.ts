/** Conversations for training a language model on its answers. */
import { check, checkOptions, checkValue } from "@opt/core";
import type { Message, Tokenizer } from "../tokenizer/tokenizer";
import { IGNORED } from "./causal-loss";
import { checkIndex, checkLength, type Row, type TextTokenizer, type TokenDataset, tensorsOf } from "./token-rows";

/** A tokenizer with a chat template: those of `fromPretrained` have the one of their folder. */
export type ChatTokenizer = TextTokenizer & Pick<Tokenizer, "applyChatTemplate">;

export interface ChatDatasetOptions {
  /** Tokens of a sample: longer conversations are cut, shorter ones filled up. */
  readonly length: number;
}

/**
 * A sample for each conversation, in the words of the tokenizer's template: tokens, and labels that are -100 but for what the assistant
 * says, with the end of its turn. Prompts have the tokens that `generate` gives them. A conversation is encoded when it is asked for, so
 * loop with `for await`.
 *
 * @throws OptError BAD_ARGUMENT for a length below 2 and no conversation; get, batch: BAD_ARGUMENT for a conversation without an answer, or
 * a template that writes earlier turns in another way once there is an answer
 * @example
 * const tokenizer = {
 *   encode: (text: string) => [...text].map((letter) => letter.charCodeAt(0)),
 *   applyChatTemplate: (messages: readonly { role: string; content: string }[], { addGenerationPrompt = false }) =>
 *     messages.map(({ role, content }) => `${role[0]}:${content}\n`).join("") + (addGenerationPrompt ? "a:" : ""),
 * };
 * const talk = [{ role: "user", content: "2+2" }, { role: "assistant", content: "4" }];
 * const [tokens, labels] = await chatDataset(tokenizer, [talk], { length: 10 }).get(0); // u:2+2\na:4\n, labels of 4\n
 */
export function chatDataset(
  tokenizer: ChatTokenizer,
  conversations: readonly (readonly Message[])[],
  options: ChatDatasetOptions,
): TokenDataset<true> {
  const where = "chatDataset";
  checkOptions(where, options, { length: "number" });
  const { length } = options;
  checkLength(where, length);
  const hasTemplate = typeof tokenizer.applyChatTemplate === "function";
  checkValue(hasTemplate, where, "the tokenizer", "one with applyChatTemplate", tokenizer);
  const count = Array.isArray(conversations) && conversations.every(Array.isArray) ? conversations.length : 0;
  checkValue(count > 0, where, "conversations", "a list of at least one", conversations, "[[{ role, content }]]");
  const row = async (index: number): Promise<Row> => {
    checkIndex(where, index, count);
    return rowOf(tokenizer, conversations[index]!, `${where} ${index}`);
  };
  const fill = tokenizer.ends?.[0] ?? 0;
  return {
    length: count,
    get: async (index) => tensorsOf([await row(index)], length, fill, [length]),
    batch: async (indices) => tensorsOf(await Promise.all(Array.from(indices, row)), length, fill),
  };
}

async function rowOf(tokenizer: ChatTokenizer, messages: readonly Message[], where: string): Promise<Row> {
  const tokens: number[] = [];
  const labels: number[] = [];
  let done = "";
  const add = (text: string, isAnswer: boolean) => {
    const cure = "Use a template that only adds, or one conversation for each answer.";
    checkValue(text.startsWith(done), where, "the template", "one that keeps earlier turns", text, cure);
    const piece = Array.from(tokenizer.encode(text.slice(done.length), { special: false })); // the template has them
    tokens.push(...piece);
    labels.push(...(isAnswer ? piece : piece.map(() => IGNORED)));
    done = text;
  };
  for (const [i, { role }] of messages.entries()) {
    if (role !== "assistant") continue;
    add(await tokenizer.applyChatTemplate!(messages.slice(0, i), { addGenerationPrompt: true }), false);
    add(await tokenizer.applyChatTemplate!(messages.slice(0, i + 1), { addGenerationPrompt: false }), true);
  }
  const problem = () => "a conversation must have an answer of the assistant.";
  check(tokens.length > 0, "BAD_ARGUMENT", where, problem, '{ role: "assistant", content: "..." }');
  return { tokens, labels };
}
