import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { init, tensor } from "@opt/core";
import { EXACT_DEVICES, eachDevice, expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { goldens, PROMPTS, TOKENS, tiny } from "../../testing/tiny";
import { type GenerateTokensOptions, generateTokens, type LanguageModel } from "../index";

async function rowsOf(model: LanguageModel, prompts: readonly (readonly number[])[], options: GenerateTokensOptions) {
  const rows: number[][] = prompts.map(() => []);
  for await (const step of generateTokens(model, prompts, options))
    for (const [i, token] of step.entries()) if (token !== null) rows[i]!.push(token);
  return rows;
}

const generated = [...goldens].filter(([, { greedy }]) => greedy[0]!.length > 0).map(([name]) => name);

await eachDevice((device) => {
  it.each(generated)("%s: 64 greedy tokens of unequal prompts are transformers'", async (name) => {
    const model = await tiny(name, device);
    const { tensors } = device.memory();
    const rows = await rowsOf(model, PROMPTS, { maxTokens: 64, compile: false });
    expect(rows).toEqual(goldens.get(name)!.greedy);
    expect(await rowsOf(model, PROMPTS, { maxTokens: 64 })).toEqual(rows);
    expect(device.memory().tensors).toBe(tensors);
  });
}, EXACT_DEVICES);

it("without a cache the tokens are the same", async () => {
  const model = await tiny("qwen3", "js");
  const tokens = [...PROMPTS[1]!];
  for (let i = 0; i < 12; i++) {
    const logits = await model.forward(tensor([tokens], { dtype: "i32" })).data();
    const last = [...logits.slice(-61)];
    tokens.push(last.indexOf(Math.max(...last)));
  }
  expect(tokens.slice(11)).toEqual(goldens.get("qwen3")!.greedy[1]!.slice(0, 12));
});

it("rows draw what they draw alone, by the seed", async () => {
  const model = await tiny("llama", "js");
  const options = { maxTokens: 8, temperature: 1.5, topK: 20, topP: 0.9, repetitionPenalty: 1.1 };
  const rows = await rowsOf(model, PROMPTS, { ...options, seed: 3 });
  for (const [i, prompt] of PROMPTS.entries())
    expect(await rowsOf(model, [prompt], { ...options, seed: 3 + i })).toEqual([rows[i]]);
  expect(await rowsOf(model, PROMPTS, { ...options, seed: 9 })).not.toEqual(rows);
});

it("a row ends at one of its ends, and where the positions end", async () => {
  const model = await tiny("gpt2", "js");
  const [first] = goldens.get("gpt2")!.greedy;
  const rows = await rowsOf(model, PROMPTS, { maxTokens: 5, ends: [first![0]!] });
  expect(rows[0]).toEqual([first![0]]);
  const long = Array.from({ length: 126 }, (_, i) => TOKENS[i % 24]!);
  expect((await rowsOf(model, [long], {}))[0]!.length).toBe(3); // the last one needs no position
  const shorter = long.slice(0, 120);
  const both = await rowsOf(model, [long, shorter], { compile: false });
  expect(both.map(({ length }) => length)).toEqual([3, 9]);
  expect([both[1]]).toEqual(await rowsOf(model, [shorter], { compile: false }));
});

it("wrong arguments are rejected", async () => {
  await init("js");
  const model = await tiny("gpt2", "js");
  const first = (prompts: readonly (readonly number[])[], options: GenerateTokensOptions) =>
    generateTokens(model, prompts, options).next();
  for (const prompts of [[], [[]], [Array.from({ length: 129 }, () => 1)]])
    await expectCode("BAD_ARGUMENT", () => first(prompts, {}));
  for (const options of [{ maxTokens: 0 }, { temperature: -1 }, { topK: 1.5 }, { topP: 0 }, { repetitionPenalty: 0 }])
    await expectCode("BAD_ARGUMENT", () => first([[1]], options));
});
