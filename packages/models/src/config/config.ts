/** What a decoder consists of, from its config.json. */
import { checkValue, show } from "@opt/core";
import { checkExtents, unsupported } from "../check";
import { type ConfigJson, Fields } from "./fields";
import { type Rope, readRope } from "./rope";

const ACTIVATIONS = ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"] as const;
const LAYERS = ["full_attention", "sliding_attention"] as const;

/** A decoder's sizes and parts. */
export interface ModelConfig {
  readonly family: keyof typeof FAMILIES;
  readonly vocabulary: number;
  readonly width: number;
  /** Width inside of a block's network. */
  readonly inner: number;
  readonly layers: number;
  readonly heads: number;
  /** Heads of keys and values; several query heads share one. */
  readonly kvHeads: number;
  readonly headDim: number;
  /** The longest sequence that the model was trained for. */
  readonly positions: number;
  readonly eps: number;
  readonly activation: (typeof ACTIVATIONS)[number];
  /** The head's weight is the table of embeddings. */
  readonly tied: boolean;
  readonly biases: { readonly qkv: boolean; readonly output: boolean; readonly mlp: boolean };
  /** Queries and keys are normalized by head. */
  readonly headNorms: boolean;
  /** Factor of the scores. */
  readonly scale: number;
  /** Logits are softcap tanh(logits / softcap). */
  readonly softcap: number | null;
  /** By layer: how many positions a query sees, itself included; null for all before it. */
  readonly windows: readonly (number | null)[];
  /** By layer. */
  readonly ropes: readonly Rope[];
  /** The file's content. */
  readonly json: ConfigJson;
}

type Parts = Omit<ModelConfig, "family" | "json">;

function gpt2(fields: Fields): Parts {
  fields.fixed("scale_attn_weights", true);
  for (const name of ["scale_attn_by_inverse_layer_idx", "add_cross_attention"]) fields.fixed(name, false);
  const [width, heads, layers] = [fields.number("n_embd"), fields.number("n_head"), fields.number("n_layer")];
  return {
    ...{ width, heads, layers, kvHeads: heads, headDim: width / heads, scale: Math.sqrt(heads / width) },
    vocabulary: fields.number("vocab_size"),
    inner: fields.number("n_inner", 4 * width),
    positions: fields.number("n_positions"),
    eps: fields.number("layer_norm_epsilon", 1e-5),
    activation: fields.oneOf("activation_function", ACTIVATIONS, "gelu_new"),
    tied: fields.boolean("tie_word_embeddings", true),
    biases: { qkv: true, output: true, mlp: true },
    ...{ headNorms: false, softcap: null, ropes: [], windows: Array.from({ length: layers }, () => null) },
  };
}

/** Llama, and what its descendants have in common with it. */
function llama(
  fields: Fields,
  own: { tied?: boolean; theta?: number; localTheta?: number; pattern?: number } = {},
): Parts {
  fields.fixed("pretraining_tp", 1);
  const [width, heads] = [fields.number("hidden_size"), fields.number("num_attention_heads")];
  const [layers, positions] = [fields.number("num_hidden_layers"), fields.number("max_position_embeddings")];
  const headDim = fields.number("head_dim", width / heads);
  const theta = fields.number("rope_theta", own.theta ?? 1e4);
  const bias = fields.boolean("attention_bias", false);
  const given = fields.any("rope_parameters", "rope_scaling") as ConfigJson | undefined;
  const perKind = given !== undefined && LAYERS.some((kind) => kind in given);
  const full = readRope(perKind ? given.full_attention : given, theta, positions);
  const localTheta = fields.number("rope_local_base_freq", own.localTheta ?? theta);
  const local = perKind ? given.sliding_attention : own.localTheta === undefined ? given : undefined;
  const sliding = readRope(local, localTheta, positions);
  const kinds = layerKinds(fields, layers, own.pattern);
  const window = fields.any("sliding_window");
  if (kinds.includes(LAYERS[1])) fields.number("sliding_window");
  return {
    ...{ width, heads, layers, positions, headDim, scale: 1 / Math.sqrt(headDim) },
    vocabulary: fields.number("vocab_size"),
    inner: fields.number("intermediate_size"),
    kvHeads: fields.number("num_key_value_heads", heads),
    eps: fields.number("rms_norm_eps", 1e-6),
    activation: fields.oneOf("hidden_act", ACTIVATIONS, "silu"),
    tied: fields.boolean("tie_word_embeddings", own.tied ?? false),
    biases: { qkv: bias, output: bias, mlp: fields.boolean("mlp_bias", false) },
    ...{ headNorms: false, softcap: null },
    windows: kinds.map((kind) => (kind === LAYERS[1] ? (window as number) : null)),
    ropes: kinds.map((kind) => (kind === LAYERS[1] ? sliding : full)),
  };
}

/** Which layers see only a window: as listed, or by the rules of files without a list. */
function layerKinds(fields: Fields, layers: number, pattern = 0): readonly string[] {
  const listed = fields.any("layer_types") as readonly string[] | undefined;
  const every = fields.number("sliding_window_pattern", pattern);
  const isSliding = fields.any("use_sliding_window") === true;
  const first = fields.number("max_window_layers", 28);
  const slides = (i: number) => (every ? (i + 1) % every !== 0 : isSliding && i >= first);
  const kinds = listed ?? Array.from({ length: layers }, (_, i) => LAYERS[slides(i) ? 1 : 0]);
  const unknown = kinds.find((kind) => !LAYERS.some((known) => known === kind));
  if (unknown === undefined && kinds.length === layers) return kinds;
  return unsupported("config.json", `layer_types must be ${layers} of ${LAYERS.join(", ")}, got ${show(kinds)}.`);
}

const qwen2 = (fields: Fields): Parts => ({ ...llama(fields), biases: { qkv: true, output: false, mlp: false } });
const qwen3 = (fields: Fields): Parts => ({ ...llama(fields), headNorms: true });

function gemma3(fields: Fields): Parts {
  fields.fixed("attn_logit_softcapping", null);
  fields.fixed("use_bidirectional_attention", false);
  const parts = llama(fields, { tied: true, theta: 1e6, localTheta: 1e4, pattern: 6 });
  const activation = fields.oneOf("hidden_activation", ACTIVATIONS, "gelu_pytorch_tanh");
  const softcap = (fields.any("final_logit_softcapping") ?? null) as number | null;
  return { ...parts, activation, softcap, headNorms: true, scale: fields.number("query_pre_attn_scalar", 256) ** -0.5 };
}

const FAMILIES = { gpt2, llama, qwen2, qwen3, gemma3_text: gemma3 };

/**
 * The parts of a model by its config.json. A field that may change numbers and that nothing here reads throws: a model never computes
 * something else than it was trained to. Dropout is left out.
 *
 * @throws OptError UNSUPPORTED for another `model_type`, or a field that is not known; BAD_ARGUMENT for a size that is missing or no whole number
 * @example
 * const config = readConfig({ model_type: "gpt2", vocab_size: 50, n_positions: 16, n_embd: 8, n_layer: 1, n_head: 2 });
 * console.log(config.headDim); // 4
 */
export function readConfig(json: ConfigJson): ModelConfig {
  checkValue(typeof json === "object" && json !== null, "config.json", "it", "an object of fields", json);
  const fields = new Fields(json);
  const family = fields.oneOf("model_type", Object.keys(FAMILIES) as (keyof typeof FAMILIES)[]);
  const parts = FAMILIES[family](fields);
  const { vocabulary, width, inner, layers, heads, kvHeads, headDim, positions } = parts;
  checkExtents("config.json", { vocabulary, width, inner, layers, heads, kvHeads, headDim, positions });
  checkExtents("config.json", { "heads for each of keys": heads / kvHeads });
  fields.finish();
  return { family, ...parts, json };
}
