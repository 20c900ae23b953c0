/** Text as numbers: one per character. */
import { check, show } from "@opt/core";

/**
 * The characters of a text, numbered in the order of their code units.
 *
 * @example
 * const alphabet = new Alphabet("banana");
 * alphabet.decode(alphabet.encode("ban")); // "ban", from [1, 0, 2]
 */
export class Alphabet {
  readonly characters: readonly string[];
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(text: string) {
    checkText(text);
    this.characters = [...new Set(text)].sort();
    this.#numbers = new Map(this.characters.map((character, i) => [character, i]));
  }

  get length(): number {
    return this.characters.length;
  }

  /** @throws OptError BAD_ARGUMENT for a character that the text did not have */
  encode(text: string): Int32Array {
    checkText(text);
    return Int32Array.from(text, (character) => {
      const number = this.#numbers.get(character);
      check(
        number !== undefined,
        "BAD_ARGUMENT",
        "Alphabet",
        () => `${JSON.stringify(character)} is not among the ${this.length} characters.`,
        "Build the alphabet from all of the text.",
      );
      return number;
    });
  }

  /** @throws OptError BAD_ARGUMENT for a number that stands for no character */
  decode(tokens: Iterable<number>): string {
    const isList = typeof (tokens as Partial<Iterable<number>> | null)?.[Symbol.iterator] === "function";
    check(isList, "BAD_ARGUMENT", "Alphabet", () => `needs tokens, got ${show(tokens)}.`, "For example [0, 1].");
    return Array.from(tokens, (token) => {
      const character = typeof token === "number" ? this.characters[token] : undefined;
      check(
        character !== undefined,
        "BAD_ARGUMENT",
        "Alphabet",
        () => `a token must be from 0 to ${this.length - 1}, got ${show(token)}.`,
        "Decode what encode or the model gave.",
      );
      return character;
    }).join("");
  }
}

function checkText(text: unknown): void {
  check(typeof text === "string", "BAD_ARGUMENT", "Alphabet", () => `needs a text, got ${show(text)}.`);
}
