/** The tokenizer of the shipped base: tokens are characters' codes, ASCII. */

export const CHARACTERS = 128;

export const characters = {
  encode: (text: string) => Array.from(text, (character) => Math.min(character.charCodeAt(0), CHARACTERS - 1)),
  decode: (tokens: readonly number[]) => String.fromCharCode(...tokens),
};
