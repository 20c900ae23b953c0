/** Samples of tokens and their labels, all of one length: steps then compile once. */
import { check, checkValue, type Tensor, tensor } from "@opt/core";
import { IGNORED } from "./causal-loss";

/** What texts are turned into tokens by: every tokenizer of `fromPretrained`. */
export interface TextTokenizer {
  /** With the tokens that begin and end a sequence, where the tokenizer adds any, unless `special` is false. */
  encode(text: string, options?: { readonly special?: boolean }): ArrayLike<number>;
  /** Tokens after which nothing comes. The first one separates texts, and fills rows up. */
  readonly ends?: readonly number[];
}

/** Tokens and labels, i32 [length] and in batches [batch, length]. For `DataLoader` and `fit` with `causalLoss`. */
export interface TokenDataset<Later extends boolean = false> {
  readonly length: number;
  get(index: number): Later extends true ? Promise<[Tensor, Tensor]> : [Tensor, Tensor];
  batch(indices: ArrayLike<number>): Later extends true ? Promise<[Tensor, Tensor]> : [Tensor, Tensor];
}

/** Up to `length` of them; what lacks is filled up, and counts for no loss. */
export interface Row {
  readonly tokens: ArrayLike<number>;
  readonly labels: ArrayLike<number>;
}

/** @throws OptError BAD_ARGUMENT */
export function checkLength(where: string, length: number): void {
  checkValue(Number.isInteger(length) && length >= 2, where, "length", "an integer >= 2", length, "Use 256.");
}

export function checkIndex(where: string, index: number, length: number): void {
  const isIndex = Number.isInteger(index) && index >= 0 && index < length;
  check(isIndex, "BAD_ARGUMENT", where, () => `an index must be from 0 to ${length - 1}, got ${index}.`);
}

/** @param shape without it [rows, length] */
export function tensorsOf(rows: readonly Row[], length: number, fill: number, shape?: number[]): [Tensor, Tensor] {
  const of = (name: keyof Row, rest: number) => {
    const values = new Int32Array(rows.length * length).fill(rest);
    for (const [i, row] of rows.entries()) values.set(Array.from(row[name]).slice(0, length), i * length);
    return tensor(values, { shape: shape ?? [rows.length, length] });
  };
  return [of("tokens", fill), of("labels", IGNORED)];
}
