/** What a config.json may say. */
import { Generator, noGrad, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { goldens, tiny } from "../../testing/tiny";
import { LanguageModel } from "../decoder/language-model";
import { type ConfigJson, KeyValueCache, languageModel, readConfig } from "../index";
import { inverseFrequencies } from "./rope";

const { config: llama } = goldens.get("llama")!;
const { config: gemma } = goldens.get("gemma3")!;
const { config: gpt2 } = goldens.get("gpt2")!;

it.each<[string, ConfigJson, string]>([
  ["another model", { model_type: "bert" }, "model_type"],
  ["a field that nobody reads", { ...llama, key_scale: 2 }, "key_scale"],
  ["another activation", { ...llama, hidden_act: "swish2" }, "hidden_act"],
  ["another scaling", { ...llama, rope_parameters: { rope_type: "longrope", factor: 2 } }, "rope_type"],
  ["a field of a scaling", { ...llama, rope_parameters: { rope_type: "linear", factor: 2, beta: 1 } }, "beta"],
  ["heads turned in part", { ...llama, rope_parameters: { partial_rotary_factor: 0.5 } }, "partial_rotary_factor"],
  ["divided products", { ...llama, pretraining_tp: 2 }, "pretraining_tp"],
  ["softcapped scores", { ...gemma, attn_logit_softcapping: 50 }, "attn_logit_softcapping"],
  ["scores in both directions", { ...gemma, use_bidirectional_attention: true }, "use_bidirectional_attention"],
  ["layers of another kind", { ...gemma, layer_types: ["chunked_attention"] }, "layer_types"],
  ["scores of other scales", { ...gpt2, scale_attn_weights: false }, "scale_attn_weights"],
  ["scores scaled by layer", { ...gpt2, scale_attn_by_inverse_layer_idx: true }, "scale_attn_by_inverse_layer_idx"],
])("%s is rejected and named", (_, json, field) => {
  expectCode("UNSUPPORTED", () => readConfig(json));
  expect(() => readConfig(json)).toThrow(field);
});

it("a size that is missing or no number is rejected", async () => {
  await expectCode("BAD_ARGUMENT", () => readConfig({ ...llama, hidden_size: undefined }));
  await expectCode("BAD_ARGUMENT", () => readConfig({ ...llama, hidden_size: "16" }));
  for (const wrong of [{ vocab_size: 0 }, { num_attention_heads: 3 }, { num_key_value_heads: 3 }])
    await expectCode("BAD_ARGUMENT", () => readConfig({ ...llama, ...wrong }));
});

it("older files say the same in other fields", () => {
  const { rope_parameters: _, layer_types: __, ...old } = gemma;
  const given = { ...old, rope_theta: 1e4, rope_local_base_freq: 100, rope_scaling: { type: "linear", factor: 2 } };
  const { json, ...parts } = readConfig({ ...given, sliding_window_pattern: 2 });
  const { json: ____, ...expected } = readConfig(gemma);
  expect(parts).toEqual(expected);
  expect(readConfig({ ...old, num_hidden_layers: 12 }).windows.map((window) => window === null)).toEqual(
    Array.from({ length: 12 }, (_, i) => i % 6 === 5),
  );
  expect(inverseFrequencies(parts.ropes[0]!, 8, 1)[1]).toBeCloseTo(100 ** -0.25);
});

const { layer_types: _, sliding_window: __, ...plain } = llama;
it.each<[string, ConfigJson, object]>([
  ["biases of attention", { ...plain, attention_bias: true }, { biases: { qkv: true, output: true, mlp: false } }],
  ["biases of networks", { ...plain, mlp_bias: true }, { biases: { qkv: false, output: false, mlp: true } }],
  ["its eps", { ...plain, rms_norm_eps: 0.5 }, { eps: 0.5 }],
  ["a width of heads", { ...plain, head_dim: 4 }, { headDim: 4, scale: 0.5 }],
  ["no count of heads of keys", { ...plain, num_key_value_heads: null }, { kvHeads: plain.num_attention_heads }],
  ["a tied head", { ...plain, tie_word_embeddings: true }, { tied: true }],
  ["another activation", { ...plain, hidden_act: "relu" }, { activation: "relu" }],
  ...[0, 1, 3].map((max_window_layers): [string, ConfigJson, object] => [
    `windows from layer ${max_window_layers} on`,
    { ...plain, num_hidden_layers: 3, use_sliding_window: true, sliding_window: 4, max_window_layers },
    { windows: [0, 1, 2].map((layer) => (layer >= max_window_layers ? 4 : null)) },
  ]),
  [
    "no layer from which on there are windows: transformers takes 28",
    { ...plain, num_hidden_layers: 30, use_sliding_window: true, sliding_window: 4 },
    { windows: Array.from({ length: 30 }, (_, layer) => (layer >= 28 ? 4 : null)) },
  ],
  ["windows that are off", { ...plain, use_sliding_window: false, sliding_window: 4 }, { windows: [null, null] }],
  ["a softcap", { ...gemma, final_logit_softcapping: 3 }, { softcap: 3 }],
  ["a factor of scores", { ...gemma, query_pre_attn_scalar: 4 }, { scale: 0.5 }],
  ["no inner width", { ...gpt2, n_inner: null }, { inner: 4 * (gpt2.n_embd as number) }],
  ["an inner width", { ...gpt2, n_inner: 5 }, { inner: 5 }],
  ["an eps of layer norms", { ...gpt2, layer_norm_epsilon: 0.5 }, { eps: 0.5 }],
  ["an activation of GPT-2", { ...gpt2, activation_function: "relu" }, { activation: "relu" }],
  ["a head of its own", { ...gpt2, tie_word_embeddings: false }, { tied: false }],
])("%s: what a file says is what the model has", (_, json, parts) => {
  expect(readConfig(json)).toMatchObject(parts);
});

it.each(["gpt2", "llama", "gemma3"])("%s: new weights have the deviation of its file, or 0.02", (name) => {
  for (const initializer_range of [undefined, 0.5]) {
    const model = languageModel({ ...goldens.get(name)!.config, initializer_range }, { generator: new Generator(1) });
    for (const weight of model.parameters().filter(({ shape }) => shape.length > 1))
      expect(noGrad(() => weight.square().mean().sqrt().dataSync()[0]!) / (initializer_range ?? 0.02)).toBeCloseTo(
        1,
        0,
      );
  }
});

it("yarn has the factor of its scores by its file's fields", () => {
  const ropeOf = (more: object) =>
    readConfig({ ...llama, rope_parameters: { rope_type: "yarn", factor: 4, ...more } }).ropes[0]!;
  expect(ropeOf({}).attention).toBeCloseTo(0.1 * Math.log(4) + 1, 12);
  expect(ropeOf({ factor: 1 }).attention).toBe(1);
  expect(ropeOf({ attention_factor: 1.5 }).attention).toBe(1.5);
  expect(ropeOf({ mscale: 2, mscale_all_dim: 1 }).attention).toBeCloseTo(
    (0.2 * Math.log(4) + 1) / (0.1 * Math.log(4) + 1),
    12,
  );
  const parts = { original_max_position_embeddings: 32, beta_fast: 8 };
  const [whole, exact] = [true, false].map((truncate) => inverseFrequencies(ropeOf({ ...parts, truncate }), 64, 1));
  expect(whole).not.toEqual(exact);
});

it("dynamic scaling has no cache beyond its context", async () => {
  const model = await tiny("llama-dynamic", "js");
  const tokens = tensor([[1]], { dtype: "i32" });
  model.forward(tokens, { cache: new KeyValueCache(model, { capacity: 12 }) });
  await expectCode("UNSUPPORTED", () => model.forward(tokens, { cache: new KeyValueCache(model, { capacity: 13 }) }));
});

it("a config that is no object is rejected", () => {
  for (const json of [null, 5]) expectCode("BAD_ARGUMENT", () => languageModel(json as never));
});

it("passes that fit nowhere are rejected", async () => {
  const model = languageModel(gpt2);
  const tokens = tensor([[1, 2]], { dtype: "i32" });
  const cache = new KeyValueCache(model, { capacity: 4 });
  await expectCode("BAD_SHAPE", () => model.forward(tensor([1], { dtype: "i32" })));
  await expectCode("BAD_ARGUMENT", () => model.forward(tokens, { at: 1 }));
  await expectCode("BAD_ARGUMENT", () => model.forward(tokens, { cache, at: 3 }));
  await expectCode("BAD_SHAPE", () => model.forward(tokens, { cache, at: tensor([1], { dtype: "i32" }) }));
  await expectCode("BAD_ARGUMENT", () => new KeyValueCache(model, { capacity: 0 }));
});

it("a model in float64 has the logits of float32", async () => {
  const model = new LanguageModel(readConfig(llama), { device: "js", dtype: "f64" });
  const single = await tiny("llama", "js");
  model.loadStateDict(single.stateDict());
  const tokens = tensor([[1, 2, 3]], { dtype: "i32" });
  const expected = await single.forward(tokens).data();
  expect(await model.forward(tokens).data()).toAgreeWith(expected, { absolute: 1e-4, relative: 0 });
});

it("the two halves of a pass are the whole", async () => {
  const model = languageModel(llama);
  const tokens = tensor([[1, 2]], { dtype: "i32" });
  const cache = new KeyValueCache(model, { batch: 1, capacity: 4 });
  const hidden = model.hidden(tokens, { cache, at: 0 });
  expect(await model.logits(hidden).data()).toEqual(await model.forward(tokens).data());
});

it("recomputed blocks give the same gradients", async () => {
  const gradients = [false, true].map((recompute) => {
    const model = languageModel(gemma, { dtype: "f32" });
    for (const [i, parameter] of model.parameters().entries())
      parameter.detach().set(parameter.mul(0).add(0.01 * (i + 1)));
    model.recompute = recompute;
    model
      .forward(tensor([[1, 2, 3, 4, 5, 6, 7, 8, 9]], { dtype: "i32" }))
      .square()
      .sum()
      .backward();
    return model.parameters().map(({ grad }) => [...(grad as ReturnType<typeof tensor>).dataSync()]);
  });
  expect(gradients[1]).toEqual(gradients[0]);
});
