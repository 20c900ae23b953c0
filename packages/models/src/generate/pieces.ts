/** Tokens as pieces of text: each as soon as its characters are whole and no stop word may begin in it. */
import type { Tokenizer } from "../tokenizer/tokenizer";

/** What a byte of a character is that is not whole. */
const BROKEN = "\ufffd";
/** Tokens before a piece that decide whether it begins with a space. */
const CONTEXT = 5;

export class Pieces {
  readonly #tokens: number[];
  /** Texts of tokens from here on are compared, up to `#given` and up to the end. */
  #from: number;
  #given: number;
  /** What may be the beginning of a stop word. */
  #held = "";
  /** A stop word was found. */
  isStopped = false;

  constructor(
    private readonly tokenizer: Tokenizer,
    prompt: readonly number[],
    private readonly stop: readonly string[],
  ) {
    this.#tokens = [...prompt];
    this.#given = prompt.length;
    this.#from = Math.max(0, prompt.length - CONTEXT);
  }

  /** The text that is sure after one more token, or after the last one. */
  next(token: number | null): string {
    if (token !== null) this.#tokens.push(token);
    const before = this.tokenizer.decode(this.#tokens.slice(this.#from, this.#given));
    const after = this.tokenizer.decode(this.#tokens.slice(this.#from));
    if (token !== null && (after.endsWith(BROKEN) || after.length <= before.length)) return "";
    this.#from = this.#given;
    this.#given = this.#tokens.length;
    return this.#sure(this.#held + after.slice(before.length), token === null);
  }

  #sure(text: string, isLast: boolean): string {
    const found = this.stop.map((word) => text.indexOf(word)).filter((at) => at >= 0);
    this.isStopped = found.length > 0;
    let end = this.isStopped ? Math.min(...found) : text.length;
    const mayBegin = (at: number) => this.stop.some((word) => word.startsWith(text.slice(at)));
    if (!this.isStopped && !isLast) for (let at = text.length - 1; at >= 0; at--) if (mayBegin(at)) end = at;
    this.#held = text.slice(end);
    return text.slice(0, end);
  }
}
