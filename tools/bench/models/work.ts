/** The language model of the bench `models`: a Llama of 20 million numbers. `models_torch.py` has it by transformers. */
import { Generator, type Tensor, tensor } from "@opt/core";
import { causalLoss, generateTokens, type LanguageModel, languageModel } from "@opt/models";
import { setFirstWeights } from "../nn/first-weights";
import { integers } from "../nn/values";

export type Work = "train" | "decode";

export const [BATCH, LENGTH, PROMPT, TOKENS] = [4, 256, 16, 32];

const VOCABULARY = 10_000;
const CONFIG = {
  ...{ model_type: "llama", vocab_size: VOCABULARY, hidden_size: 384, intermediate_size: 1024, num_hidden_layers: 10 },
  ...{ num_attention_heads: 6, num_key_value_heads: 2, max_position_embeddings: 256, tie_word_embeddings: true },
};

export function model(): LanguageModel {
  const made = languageModel(CONFIG, { generator: new Generator(1) });
  setFirstWeights(made);
  return made;
}

export function batch(index: number): Tensor {
  return tensor(integers(BATCH * LENGTH, 104_729 + 2 * index, VOCABULARY), { shape: [BATCH, LENGTH], dtype: "i32" });
}

export function lossOf(llama: LanguageModel, tokens: Tensor): Tensor {
  const { sum, count } = causalLoss(llama.forward(tokens), tokens);
  return sum.div(count);
}

/** The tokens after a prompt: the most probable one each time. */
export async function decode(llama: LanguageModel, compile: boolean): Promise<number[]> {
  const tokens: number[] = [];
  const prompt = [...integers(PROMPT, 31, VOCABULARY)];
  for await (const [token] of generateTokens(llama, [prompt], { maxTokens: TOKENS, compile })) tokens.push(token!);
  return tokens;
}
