/** What this package asks of a tokenizer. Any object with `encode` and `decode` does. */

/** Texts as tokens, and back. */
export interface Tokenizer {
  /** Tokens of a text; with those that begin and end a sequence, where the tokenizer adds any, unless `special` is false. */
  encode(text: string, options?: { readonly special?: boolean }): readonly number[];
  /** The text of tokens, without special ones. Bytes that are no whole character yet become U+FFFD. */
  decode(tokens: readonly number[]): string;
  /** Tokens after which nothing comes. */
  readonly ends?: readonly number[];
  /** The text of a conversation; with `addGenerationPrompt` up to where the next answer begins. */
  applyChatTemplate?(
    messages: readonly Message[],
    options: { readonly addGenerationPrompt: boolean },
  ): Promise<string> | string;
}

/** A turn of a conversation. */
export interface Message {
  readonly role: string;
  readonly content: string;
}
