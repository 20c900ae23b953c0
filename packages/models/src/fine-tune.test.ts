/** The parts together: a model is read in 8 bits, taught by adapters, asked, and its adapter opened on another copy. */
import { AdamW } from "@opt/adam-amsgrad";
import { memoryFileSystem } from "@opt/checkpoint";
import { compile, Generator, init, manualSeed, noGrad, type Tensor, tensor } from "@opt/core";
import { expect, it } from "vitest";
import {
  causalLoss,
  fromPretrained,
  generateTokens,
  type LanguageModel,
  languageModel,
  loadAdapter,
  lora,
  type Quantization,
  saveAdapter,
  savePretrained,
  textDataset,
} from "./index";

const CONFIG = {
  ...{ model_type: "llama", vocab_size: 40, hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2 },
  ...{ num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 64, rms_norm_eps: 1e-5 },
  ...{ rope_theta: 10_000, tie_word_embeddings: false, hidden_act: "silu" },
};
const tokenizer = { encode: (text: string) => [...text].map((letter) => letter.charCodeAt(0) % 40) };
const samples = textDataset(tokenizer, ["the quick brown fox jumps over the lazy dog ".repeat(6)], { length: 16 });
const TARGETS = ["q_proj", "v_proj", "down_proj"];

async function answer(model: LanguageModel): Promise<number[]> {
  const tokens: number[] = [];
  for await (const [token] of generateTokens(model, [[5, 6, 7]], { maxTokens: 12 })) tokens.push(token!);
  return tokens;
}

const logits = (model: LanguageModel) =>
  noGrad(() =>
    model
      .forward(tensor([[1, 2, 3, 4]], { dtype: "i32" }))
      .dataSync()
      .slice(),
  );

it.each<[Quantization | undefined, boolean]>([
  [undefined, false],
  [undefined, true],
  ["q8", false],
  ["nf4", false],
])("in %s, DoRA %s", async (quantize, dora) => {
  await init("js");
  manualSeed(3);
  const fileSystem = memoryFileSystem();
  await savePretrained(languageModel(CONFIG), "base", { fileSystem });
  const read = async () => (await fromPretrained("base", { fileSystem, ...(quantize && { quantize }) })).model;
  const options = { rank: 4, targets: TARGETS, dora, generator: new Generator(5) };
  const model = await read();
  const plain = logits(model);
  expect(lora(model, options)).toBe(model);
  expect(logits(model)).toEqual(plain);
  const optimizer = new AdamW(model.namedParameters({ trainable: true }), { lr: 3e-2 });
  const step = (tokens: Tensor, labels: Tensor) => {
    const { sum, count } = causalLoss(model.forward(tokens), labels);
    const loss = sum.div(count);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  };
  const compiled = compile(step);
  const losses: number[] = [];
  for (let i = 0; i < 20; i++) {
    const [tokens, labels] = samples.batch([0, 1, 2]);
    losses.push((i % 2 === 0 ? step : compiled)(tokens, labels).dataSync()[0]!);
  }
  expect(losses.at(-1)!).toBeLessThan(losses[0]! - 0.2);
  expect(logits(model)).not.toEqual(plain);

  await saveAdapter(model, "adapter", { fileSystem });
  const other = await read();
  await loadAdapter(other, "adapter", { fileSystem });
  expect(logits(other)).toEqual(logits(model));
  expect(await answer(other)).toEqual(await answer(model));
});
