/** GPT-2 (Radford et al. 2019): learned positions, layer norms. Names are those of its files. */
import type { Tensor } from "@opt/core";
import { type Embedding, LayerNorm, type Linear, Module } from "@opt/nn";
import { splitHeads } from "../attention/heads";
import type { Pass } from "../attention/passing";
import type { ModelConfig } from "../config/config";
import { ACTIVATION, linearOf, tableOf, type WeightOptions } from "./parts";

/** The files' order of a weight is [in, out]; here, as everywhere else, it is [out, in]. */
export function isTransposed({ family }: ModelConfig, name: string): boolean {
  return family === "gpt2" && /\.c_(attn|proj|fc)\.weight$/.test(name);
}

class Attention extends Module {
  readonly c_attn: Linear;
  readonly c_proj: Linear;
  readonly #heads: number;

  constructor({ width, heads }: ModelConfig, options: WeightOptions) {
    super();
    this.c_attn = linearOf(width, 3 * width, true, options);
    this.c_proj = linearOf(width, width, true, options);
    this.#heads = heads;
  }

  forward(x: Tensor, layer: number, pass: Pass): Tensor {
    const all = this.c_attn.forward(x);
    const width = x.shape[2]!;
    const [q, k, v] = [0, 1, 2].map((part) => splitHeads(all.slice(part * width, (part + 1) * width, -1), this.#heads));
    return this.c_proj.forward(pass.attend(layer, q!, k!, v!));
  }
}

class Network extends Module {
  readonly c_fc: Linear;
  readonly c_proj: Linear;
  readonly #activation: ModelConfig["activation"];

  constructor({ width, inner, activation }: ModelConfig, options: WeightOptions) {
    super();
    this.c_fc = linearOf(width, inner, true, options);
    this.c_proj = linearOf(inner, width, true, options);
    this.#activation = activation;
  }

  forward(x: Tensor): Tensor {
    return this.c_proj.forward(ACTIVATION[this.#activation](this.c_fc.forward(x)));
  }
}

class Block extends Module {
  readonly ln_1: LayerNorm;
  readonly attn: Attention;
  readonly ln_2: LayerNorm;
  readonly mlp: Network;

  constructor(config: ModelConfig, options: WeightOptions) {
    super();
    const norm = () => new LayerNorm(config.width, { eps: config.eps, ...options });
    this.ln_1 = norm();
    this.attn = new Attention(config, options);
    this.ln_2 = norm();
    this.mlp = new Network(config, options);
  }

  forward(x: Tensor, layer: number, pass: Pass): Tensor {
    const attended = x.add(this.attn.forward(this.ln_1.forward(x), layer, pass));
    return attended.add(this.mlp.forward(this.ln_2.forward(attended)));
  }
}

export class Gpt2Trunk extends Module {
  readonly wte: Embedding;
  readonly wpe: Embedding;
  readonly h: readonly Block[];
  readonly ln_f: LayerNorm;

  constructor(config: ModelConfig, options: WeightOptions) {
    super();
    this.wte = tableOf(config.vocabulary, config.width, options);
    this.wpe = tableOf(config.positions, config.width, options);
    this.h = Array.from({ length: config.layers }, () => new Block(config, options));
    this.ln_f = new LayerNorm(config.width, { eps: config.eps, ...options });
  }

  forward(tokens: Tensor, pass: Pass): Tensor {
    const x = this.wte.forward(tokens).add(this.wpe.forward(pass.positions));
    return this.ln_f.forward(pass.through(this.h, x));
  }
}
