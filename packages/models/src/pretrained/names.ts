/** Names and orders of tensors in files. */
import type { ModelConfig } from "../config/config";

/** GPT-2's files have linear weights as [in, out]; here, as everywhere else, they are [out, in]. */
export function isTransposed({ family }: ModelConfig, name: string): boolean {
  return family === "gpt2" && /\.c_(attn|proj|fc)\.weight$/.test(name);
}

/** What older files have beside the weights: masks, tables of positions, a tied head. */
export function isIdle({ tied }: ModelConfig, name: string): boolean {
  return /\.attn\.(masked_)?bias$|rotary_emb\.inv_freq$/.test(name) || (tied && name === "lm_head.weight");
}

/** Files of a trunk without its head leave this out. */
export const PREFIX = /^(transformer|model)\./;
