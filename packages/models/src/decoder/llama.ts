/** Llama (Touvron et al. 2023), Qwen and Gemma 3: rotary positions, RMS norms, gated networks. Names are those of their files. */
import type { Tensor } from "@opt/core";
import { type Embedding, type Linear, Module, RMSNorm } from "@opt/nn";
import { rotate, splitHeads } from "../attention/heads";
import type { Pass } from "../attention/passing";
import type { ModelConfig } from "../config/config";
import { ACTIVATION, linearOf, tableOf, UnitOffsetNorm, type WeightOptions } from "./parts";

const isGemma = ({ family }: ModelConfig) => family === "gemma3_text";

function normOf(config: ModelConfig, width: number, options: WeightOptions): RMSNorm {
  return new (isGemma(config) ? UnitOffsetNorm : RMSNorm)(width, { eps: config.eps, ...options });
}

class Attention extends Module {
  readonly q_proj: Linear;
  readonly k_proj: Linear;
  readonly v_proj: Linear;
  readonly o_proj: Linear;
  readonly q_norm: RMSNorm | null;
  readonly k_norm: RMSNorm | null;
  readonly #config: ModelConfig;

  constructor(config: ModelConfig, options: WeightOptions) {
    super();
    const { width, heads, kvHeads, headDim, biases, headNorms } = config;
    const projection = (count: number) => linearOf(width, count * headDim, biases.qkv, options);
    this.q_proj = projection(heads);
    this.k_proj = projection(kvHeads);
    this.v_proj = projection(kvHeads);
    this.o_proj = linearOf(heads * headDim, width, biases.output, options);
    this.q_norm = headNorms ? normOf(config, headDim, options) : null;
    this.k_norm = headNorms ? normOf(config, headDim, options) : null;
    this.#config = config;
  }

  forward(x: Tensor, layer: number, pass: Pass): Tensor {
    const { heads, kvHeads, ropes } = this.#config;
    const rotation = pass.rotation(ropes[layer]!);
    const turned = (projected: Tensor, count: number, norm: RMSNorm | null) => {
      const split = splitHeads(projected, count);
      return rotate(norm?.forward(split) ?? split, rotation);
    };
    const q = turned(this.q_proj.forward(x), heads, this.q_norm);
    const k = turned(this.k_proj.forward(x), kvHeads, this.k_norm);
    return this.o_proj.forward(pass.attend(layer, q, k, splitHeads(this.v_proj.forward(x), kvHeads)));
  }
}

class Network extends Module {
  readonly gate_proj: Linear;
  readonly up_proj: Linear;
  readonly down_proj: Linear;
  readonly #activation: ModelConfig["activation"];

  constructor({ width, inner, biases, activation }: ModelConfig, options: WeightOptions) {
    super();
    this.gate_proj = linearOf(width, inner, biases.mlp, options);
    this.up_proj = linearOf(width, inner, biases.mlp, options);
    this.down_proj = linearOf(inner, width, biases.mlp, options);
    this.#activation = activation;
  }

  forward(x: Tensor): Tensor {
    const gate = ACTIVATION[this.#activation](this.gate_proj.forward(x));
    return this.down_proj.forward(gate.mul(this.up_proj.forward(x)));
  }
}

/** Gemma normalizes also what attention and network give; else that norm's name belongs to the network's input. */
class Block extends Module {
  readonly self_attn: Attention;
  readonly mlp: Network;
  readonly input_layernorm: RMSNorm;
  readonly post_attention_layernorm: RMSNorm;
  readonly pre_feedforward_layernorm: RMSNorm | null;
  readonly post_feedforward_layernorm: RMSNorm | null;

  constructor(config: ModelConfig, options: WeightOptions) {
    super();
    const norm = () => normOf(config, config.width, options);
    this.self_attn = new Attention(config, options);
    this.mlp = new Network(config, options);
    this.input_layernorm = norm();
    this.post_attention_layernorm = norm();
    this.pre_feedforward_layernorm = isGemma(config) ? norm() : null;
    this.post_feedforward_layernorm = isGemma(config) ? norm() : null;
  }

  forward(x: Tensor, layer: number, pass: Pass): Tensor {
    const { post_attention_layernorm: after, pre_feedforward_layernorm, post_feedforward_layernorm } = this;
    const attended = this.self_attn.forward(this.input_layernorm.forward(x), layer, pass);
    const middle = x.add(pre_feedforward_layernorm ? after.forward(attended) : attended);
    const given = this.mlp.forward((pre_feedforward_layernorm ?? after).forward(middle));
    return middle.add(post_feedforward_layernorm?.forward(given) ?? given);
  }
}

export class LlamaTrunk extends Module {
  readonly embed_tokens: Embedding;
  readonly layers: readonly Block[];
  readonly norm: RMSNorm;
  readonly #scale: number;

  constructor(config: ModelConfig, options: WeightOptions) {
    super();
    this.embed_tokens = tableOf(config.vocabulary, config.width, options);
    this.layers = Array.from({ length: config.layers }, () => new Block(config, options));
    this.norm = normOf(config, config.width, options);
    this.#scale = isGemma(config) ? Math.sqrt(config.width) : 1;
  }

  forward(tokens: Tensor, pass: Pass): Tensor {
    const rows = this.embed_tokens.forward(tokens);
    return this.norm.forward(pass.through(this.layers, this.#scale === 1 ? rows : rows.mul(this.#scale)));
  }
}
