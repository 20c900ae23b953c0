/** Orders of tensors in files. */
import type { ModelConfig } from "../config/config";

/** GPT-2's files have linear weights as [in, out]; here, as everywhere else, they are [out, in]. */
export function isTransposed({ family }: ModelConfig, name: string): boolean {
  return family === "gpt2" && /\.c_(attn|proj|fc)\.weight$/.test(name);
}
