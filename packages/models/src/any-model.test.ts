/** Models of drawn configs, by a plain program of the papers' formulas; what they generate is what they compute without a cache. */
import "@opt/kernels-cpu";
import { Generator, init, noGrad, type Tensor, tensor, tidy } from "@opt/core";
import { normal } from "@opt/nn";
import "@opt/testkit";
import fc from "fast-check";
import { expect, it } from "vitest";
import { generateTokens, KeyValueCache, type LanguageModel, languageModel, type PassOptions } from "./index";

const VOCABULARY = 7;
const FAMILIES = ["gpt2", "llama", "qwen2", "qwen3", "gemma3_text"] as const;
const ACT: Record<string, (x: number) => number> = {
  relu: (x) => Math.max(x, 0),
  silu: (x) => x / (1 + Math.exp(-x)),
  gelu_new: (x) => x / (1 + Math.exp(-2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
};

const drawn = fc.record({
  ...{ family: fc.constantFrom(...FAMILIES), dtype: fc.constantFrom("f32", "f64", "bf16"), seed: fc.nat(99) },
  ...{ heads: fc.constantFrom(2, 4), shared: fc.constantFrom(1, 2), headDim: fc.constantFrom(2, 4) },
  ...{ inner: fc.constantFrom(3, 5), positions: fc.constantFrom(5, 9), eps: fc.constantFrom(1e-6, 0.5) },
  ...{
    act: fc.constantFrom("relu", "silu", "gelu_new"),
    tied: fc.boolean(),
    compile: fc.constantFrom(false, false, false, true),
  },
  ...{ attentionBias: fc.boolean(), mlpBias: fc.boolean(), window: fc.constantFrom(1, 3, 20) },
  ...{ theta: fc.constantFrom(10, 1e4), localTheta: fc.constantFrom(3, 100), factor: fc.constantFrom(1, 2.5) },
  ...{ softcap: fc.constantFrom(null, 0.5), scalar: fc.constantFrom(0.5, 9) },
  sliding: fc.array(fc.boolean(), { minLength: 1, maxLength: 2 }),
  prompts: fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 })),
});
type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never;

const widthOf = ({ family, heads, headDim }: Drawn) => (family === "gpt2" ? heads * headDim : 6);

function jsonOf(c: Drawn) {
  const own = { model_type: c.family, vocab_size: VOCABULARY, tie_word_embeddings: c.tied };
  if (c.family === "gpt2")
    return {
      ...{ ...own, n_positions: c.positions, n_embd: widthOf(c), n_layer: c.sliding.length, n_head: c.heads },
      ...{ n_inner: c.inner, layer_norm_epsilon: c.eps, activation_function: c.act },
    };
  const isGemma = c.family === "gemma3_text";
  return {
    ...{ ...own, hidden_size: widthOf(c), intermediate_size: c.inner, num_hidden_layers: c.sliding.length },
    ...{ num_attention_heads: c.heads, num_key_value_heads: c.heads / c.shared, head_dim: c.headDim },
    ...{ max_position_embeddings: c.positions, rms_norm_eps: c.eps, sliding_window: c.window, rope_theta: c.theta },
    layer_types: c.sliding.map((slides) => (slides ? "sliding_attention" : "full_attention")),
    rope_scaling: c.factor === 1 ? null : { type: "linear", factor: c.factor },
    ...(isGemma
      ? { hidden_activation: c.act, query_pre_attn_scalar: c.scalar, final_logit_softcapping: c.softcap }
      : { hidden_act: c.act, attention_bias: c.attentionBias, mlp_bias: c.mlpBias }),
    ...(isGemma && { rope_local_base_freq: c.localTheta }),
  };
}

type Vector = readonly number[];
const dot = (a: Vector, b: Vector) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
const plus = (a: Vector, b: Vector) => a.map((x, i) => x + b[i]!);

/** Logits of each place. */
function plainLogits(c: Drawn, model: LanguageModel, tokens: readonly number[]): number[][] {
  const weights = new Map(model.namedTensors().map(([name, each]) => [name, each.tolist()]));
  const [isGpt2, isGemma] = [c.family === "gpt2", c.family === "gemma3_text"];
  const vector = (name: string) => weights.get(name) as number[];
  const rows = (name: string) => weights.get(name) as number[][];
  const linear = (name: string, x: Vector, hasBias: boolean) => {
    expect(weights.has(`${name}.bias`), name).toBe(hasBias);
    return rows(`${name}.weight`).map((row, i) => dot(row, x) + (hasBias ? vector(`${name}.bias`)[i]! : 0));
  };
  const norm = (name: string, x: Vector) => {
    const mean = isGpt2 ? x.reduce((a, b) => a + b) / x.length : 0;
    const centred = x.map((each) => each - mean);
    const length = Math.sqrt(dot(centred, centred) / x.length + c.eps);
    const [weight, bias] = [vector(`${name}.weight`), isGpt2 ? vector(`${name}.bias`) : undefined];
    return centred.map((each, i) => (each / length) * ((isGemma ? 1 : 0) + weight[i]!) + (bias?.[i] ?? 0));
  };
  const turned = (x: Vector, place: number, slides: boolean) => {
    if (isGpt2) return x;
    const isLocal = slides && isGemma;
    const half = x.length / 2;
    const [theta, factor] = isLocal ? [c.localTheta, 1] : [c.theta, c.factor];
    const angle = (i: number) => (place * theta ** (-(i % half) / half)) / factor;
    const other = (i: number) => (i < half ? -x[i + half]! : x[i - half]!);
    return x.map((each, i) => each * Math.cos(angle(i)) + other(i) * Math.sin(angle(i)));
  };
  const heads = (x: Vector) =>
    Array.from({ length: x.length / c.headDim }, (_, h) => x.slice(h * c.headDim, (h + 1) * c.headDim));
  const attention = (at: string, xs: Vector[], slides: boolean) => {
    const [own, hasBias] = [`${at}.self_attn`, c.family === "qwen2" || (!isGemma && c.attentionBias)];
    const projected = (part: "q" | "k" | "v", x: Vector, place: number) => {
      const all = isGpt2 ? linear(`${at}.attn.c_attn`, x, true) : linear(`${own}.${part}_proj`, x, hasBias);
      const width = widthOf(c);
      const split = heads(isGpt2 ? all.slice("qkv".indexOf(part) * width, ("qkv".indexOf(part) + 1) * width) : all);
      if (part === "v") return split;
      const hasNorm = c.family === "qwen3" || isGemma;
      return split.map((head) => turned(hasNorm ? norm(`${own}.${part}_norm`, head) : head, place, slides));
    };
    const [qs, ks, vs] = (["q", "k", "v"] as const).map((part) => xs.map((x, place) => projected(part, x, place)));
    const group = isGpt2 ? 1 : c.shared;
    const scale = isGemma ? c.scalar ** -0.5 : c.headDim ** -0.5;
    return xs.map((_, place) => {
      const seen = xs.flatMap((_, i) => (i <= place && (isGpt2 || !slides || i > place - c.window) ? [i] : []));
      const joined = qs![place]!.flatMap((q, h) => {
        const scores = seen.map((i) => Math.exp(scale * dot(q, ks![i]![Math.floor(h / group)]!)));
        const sum = scores.reduce((a, b) => a + b);
        return q.map(
          (_, d) =>
            dot(
              scores,
              seen.map((i) => vs![i]![Math.floor(h / group)]![d]!),
            ) / sum,
        );
      });
      return isGpt2
        ? linear(`${at}.attn.c_proj`, joined, true)
        : linear(`${own}.o_proj`, joined, c.attentionBias && c.family !== "qwen2" && !isGemma);
    });
  };
  const network = (at: string, x: Vector) => {
    const act = (y: Vector) => y.map(ACT[c.act]!);
    if (isGpt2) return linear(`${at}.mlp.c_proj`, act(linear(`${at}.mlp.c_fc`, x, true)), true);
    const hasBias = c.mlpBias && c.family !== "qwen2" && !isGemma;
    const up = linear(`${at}.mlp.up_proj`, x, hasBias);
    return linear(
      `${at}.mlp.down_proj`,
      act(linear(`${at}.mlp.gate_proj`, x, hasBias)).map((y, i) => y * up[i]!),
      hasBias,
    );
  };
  const trunk = isGpt2 ? "transformer" : "model";
  const table = `${trunk}.${isGpt2 ? "wte" : "embed_tokens"}.weight`;
  let xs: Vector[] = tokens.map((token, place) => {
    const row = rows(table)[token]!;
    return isGpt2
      ? plus(row, rows(`${trunk}.wpe.weight`)[place]!)
      : row.map((x) => x * (isGemma ? Math.sqrt(widthOf(c)) : 1));
  });
  const [before, middle, last] = isGpt2
    ? ["ln_1", "ln_2", "ln_f"]
    : ["input_layernorm", isGemma ? "pre_feedforward_layernorm" : "post_attention_layernorm", "norm"];
  for (const [layer, slides] of c.sliding.entries()) {
    const at = `${trunk}.${isGpt2 ? "h" : "layers"}.${layer}`;
    const after = (name: string, x: Vector) => (isGemma ? norm(`${at}.${name}`, x) : x);
    const attended = attention(
      at,
      xs.map((x) => norm(`${at}.${before}`, x)),
      slides,
    );
    xs = xs.map((x, i) => plus(x, after("post_attention_layernorm", attended[i]!)));
    xs = xs.map((x) => plus(x, after("post_feedforward_layernorm", network(at, norm(`${at}.${middle}`, x)))));
  }
  const cap = (y: number) => (isGemma && c.softcap !== null ? c.softcap * Math.tanh(y / c.softcap) : y);
  return xs.map((x) =>
    rows(c.tied ? table : "lm_head.weight").map((row) => cap(dot(row, norm(`${trunk}.${last}`, x)))),
  );
}

it("of every family, in every dtype", async () => {
  await init("js");
  await fc.assert(
    fc.asyncProperty(drawn, async (c) => {
      const generator = new Generator(c.seed);
      const model = languageModel(jsonOf(c), { dtype: c.dtype as "f32", generator });
      for (const each of model.parameters()) normal(each, 0, 0.5, { generator });
      const logits = (tokens: readonly number[], options: PassOptions = {}): Tensor =>
        noGrad(() => model.forward(tensor([[...tokens]], { dtype: "i32" }), options));
      const prompts = c.prompts.map((length, row) =>
        Array.from({ length }, (_, i) => (row + 3 * i * i + c.seed) % VOCABULARY),
      );
      for (const prompt of prompts) {
        const [expected, found] = [
          plainLogits(c, model, prompt).flat(),
          tidy(() => [...logits(prompt).to("f64").dataSync()]),
        ];
        const absolute = 1e-4 * Math.max(...expected.map(Math.abs));
        // Roundings to 8 bits grow from layer to layer.
        if (c.dtype !== "bf16") expect(found).toAgreeWith(expected, { absolute, relative: 0 });
        const cache = new KeyValueCache(model, { capacity: c.positions });
        const cut = c.seed % prompt.length;
        const pieces = [prompt.slice(0, cut), prompt.slice(cut)].filter((piece) => piece.length > 0);
        const cached = pieces.flatMap((piece, i) =>
          tidy(() => [
            ...logits(piece, { cache, at: i * cut })
              .to("f64")
              .dataSync(),
          ]),
        );
        expect(cached).toEqual(found);
        cache.dispose();
      }
      const made = prompts.map((prompt) => [...prompt]);
      for await (const step of generateTokens(model, prompts, { maxTokens: 6, compile: c.compile }))
        for (const [i, token] of step.entries()) if (token !== null) made[i]!.push(token);
      for (const [row, { length }] of prompts.entries()) {
        const own = made[row]!;
        const all = tidy(() => [...logits(own.slice(0, -1)).to("f64").dataSync()]);
        const best = own
          .map((_, i) => all.slice((i - 1) * VOCABULARY, i * VOCABULARY))
          .map((each) => each.indexOf(Math.max(...each)));
        expect(own.slice(length)).toEqual(best.slice(length));
        expect(own.length).toBe(Math.min(length + 6, c.positions + 1));
      }
    }),
    { seed: 1, numRuns: 18 },
  );
});
