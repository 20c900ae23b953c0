/** Texts for training a language model on all of their tokens. */
import { check, checkOptions, checkValue } from "@opt/core";
import { checkIndex, checkLength, type Row, type TextTokenizer, type TokenDataset, tensorsOf } from "./token-rows";

export interface TextDatasetOptions {
  /** Tokens of a sample. */
  readonly length: number;
  /** Puts texts behind each other and cuts them into full samples; false: each text is a sample, cut or filled up. Default true. */
  readonly packed?: boolean;
}

/**
 * Samples of tokens and labels, which are equal: `causalLoss` shifts them. Behind each text comes the tokenizer's end token. Packed samples
 * have no filling; a last one that is not full is left out. Unpacked ones have labels -100 where they are filled up.
 *
 * @throws OptError BAD_ARGUMENT for a length below 2, no list of texts, and texts that give no packed sample
 * @example
 * const letters = { encode: (text: string) => [...text].map((letter) => letter.charCodeAt(0)), ends: [0] };
 * const data = new DataLoader(textDataset(letters, ["to be", "or not"], { length: 4 }), { batchSize: 2 });
 * for (const [tokens, labels] of data) console.log(tokens.shape, labels.shape); // 3 samples: [2, 4], then [1, 4]
 */
export function textDataset(
  tokenizer: TextTokenizer,
  texts: Iterable<string>,
  options: TextDatasetOptions,
): TokenDataset {
  const where = "textDataset";
  checkOptions(where, options, { length: "number", packed: "boolean" });
  const { length, packed = true } = options;
  checkLength(where, length);
  checkValue(typeof texts !== "string", where, "texts", "a list of texts", texts, "Use [text].");
  const end = tokenizer.ends?.[0];
  const encoded = Array.from(texts, (text) => {
    const tokens = Array.from(tokenizer.encode(text));
    return end === undefined || tokens.at(-1) === end ? tokens : [...tokens, end];
  });
  const stream = packed ? Int32Array.from(encoded.flat()) : undefined;
  const count = stream === undefined ? encoded.length : Math.floor(stream.length / length);
  const problem = () => `the texts must give a sample of ${length} tokens, got ${stream?.length ?? 0} tokens.`;
  check(count > 0, "BAD_ARGUMENT", where, problem, "Give more text, or a smaller length.");
  const row = (index: number): Row => {
    checkIndex(where, index, count);
    const tokens = stream?.subarray(index * length, (index + 1) * length) ?? encoded[index]!;
    return { tokens, labels: tokens };
  };
  return {
    length: count,
    get: (index) => tensorsOf([row(index)], length, end ?? 0, [length]),
    batch: (indices) => tensorsOf(Array.from(indices, row), length, end ?? 0),
  };
}
