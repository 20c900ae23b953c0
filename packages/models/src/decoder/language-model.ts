/** A decoder with its head: tokens in, logits of the next ones out. */
import {
  check,
  checkOptions,
  checkTensor,
  type Device,
  type DType,
  type Generator,
  type Tensor,
  tidy,
} from "@opt/core";
import { type Embedding, type Linear, linear, Module, normal } from "@opt/nn";
import { Pass, type PassOptions } from "../attention/passing";
import { type ModelConfig, readConfig } from "../config/config";
import type { ConfigJson } from "../config/fields";
import { Gpt2Trunk } from "./gpt2";
import { LlamaTrunk } from "./llama";
import { linearOf, type WeightOptions } from "./parts";

/**
 * A language model of one of the families. Parameters have the names of transformers' files. Logits of a sequence have the same words
 * alone and in a batch, whole and in pieces, with and without a cache.
 */
export class LanguageModel extends Module {
  /** Of GPT-2. */
  readonly transformer: Module | null;
  /** Of the other families. */
  readonly model: Module | null;
  /** null where the table of embeddings is the head's weight. */
  readonly lm_head: Linear | null;
  /** Backward computes each block again instead of keeping its results: less memory for more time. Default false. */
  recompute = false;
  /** The path given to `fromPretrained`, and the texts that it read there; null for other models. */
  origin: { readonly path: string; readonly texts: Readonly<Record<string, string>> } | null = null;
  readonly #trunk: Gpt2Trunk | LlamaTrunk;
  readonly #table: Embedding;

  constructor(
    readonly config: ModelConfig,
    options: WeightOptions = {},
  ) {
    super();
    const trunk = config.family === "gpt2" ? new Gpt2Trunk(config, options) : new LlamaTrunk(config, options);
    const isGpt2 = trunk instanceof Gpt2Trunk;
    this.transformer = isGpt2 ? trunk : null;
    this.model = isGpt2 ? null : trunk;
    this.#trunk = trunk;
    this.#table = isGpt2 ? trunk.wte : trunk.embed_tokens;
    this.lm_head = config.tied ? null : linearOf(config.width, config.vocabulary, false, options);
  }

  get dtype(): DType {
    return this.#table.weight.dtype;
  }

  get device(): Device {
    return this.#table.weight.device;
  }

  /**
   * Logits [rows, places, vocabulary] of tokens i32 [rows, places]: each place's are for the token after it.
   *
   * @throws OptError BAD_SHAPE; BAD_ARGUMENT for more positions than the model or the cache has; UNSUPPORTED
   */
  forward(tokens: Tensor, options: PassOptions = {}): Tensor {
    return tidy(() => this.logits(this.hidden(tokens, options)));
  }

  /** What the blocks make of the tokens, [rows, places, width], for a head or a loss of your own. @throws as forward */
  hidden(tokens: Tensor, options: PassOptions = {}): Tensor {
    checkTensor("forward", tokens, "tokens");
    checkOptions("forward", options, { cache: "object", at: ["number", "object"] });
    const { shape } = tokens;
    check(shape.length === 2, "BAD_SHAPE", "forward", () => `tokens must be [rows, places], got [${shape}].`);
    return tidy(() => {
      const pass = new Pass(this.config, tokens, options, this.recompute);
      return this.#trunk.forward(tokens, pass);
    });
  }

  /** The head: logits [..., vocabulary] of what `hidden` gives. */
  logits(hidden: Tensor): Tensor {
    const { softcap } = this.config;
    return tidy(() => {
      const logits = this.lm_head?.forward(hidden) ?? linear(hidden, this.#table.weight);
      return softcap === null ? logits : logits.div(softcap).tanh().mul(softcap);
    });
  }
}

export interface LanguageModelOptions extends WeightOptions {
  /** Draws the first weights; by default the generator that `manualSeed` seeds. */
  readonly generator?: Generator;
}

/**
 * A new model with random weights, as transformers draws them: N(0, initializer_range^2), biases 0, norms 1.
 *
 * @throws OptError UNSUPPORTED, BAD_ARGUMENT: as `readConfig`
 * @example
 * const json = { model_type: "llama", vocab_size: 50, hidden_size: 8, intermediate_size: 16, num_hidden_layers: 1, num_attention_heads: 2, max_position_embeddings: 16 };
 * const model = languageModel(json, { generator: new Generator(1) });
 * model.forward(tensor([[3, 1, 4]], { dtype: "i32" })).shape; // [1, 3, 50]
 */
export function languageModel(json: ConfigJson, options: LanguageModelOptions = {}): LanguageModel {
  checkOptions("languageModel", options, { device: ["string", "object"], dtype: "string", generator: "object" });
  const { generator, ...place } = options;
  const model = new LanguageModel(readConfig(json), place);
  const deviation = typeof json.initializer_range === "number" ? json.initializer_range : 0.02;
  for (const parameter of model.parameters())
    if (parameter.shape.length > 1) normal(parameter, 0, deviation, { generator });
  return model;
}
