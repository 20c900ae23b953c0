/** A small GPT: token and position embeddings, pre-norm blocks of causal attention and a GELU network, and a head of its own. */
import { arange, gelu, type Tensor } from "@opt/core";
import { Embedding, LayerNorm, type LayerOptions, Linear, Module, scaledDotProductAttention } from "@opt/nn";

export interface GptOptions extends LayerOptions {
  /** Size of the vocabulary. */
  readonly tokens: number;
  readonly width: number;
  /** Longest sequence. */
  readonly length: number;
  readonly blocks: number;
  readonly heads: number;
}

export class Block extends Module {
  readonly ln1: LayerNorm;
  readonly qkv: Linear;
  readonly proj: Linear;
  readonly ln2: LayerNorm;
  readonly fc: Linear;
  readonly out: Linear;

  constructor(
    width: number,
    private readonly heads: number,
    options: LayerOptions,
  ) {
    super();
    const { device, dtype } = options;
    this.ln1 = new LayerNorm(width, { device, dtype });
    this.qkv = new Linear(width, 3 * width, options);
    this.proj = new Linear(width, width, options);
    this.ln2 = new LayerNorm(width, { device, dtype });
    this.fc = new Linear(width, 4 * width, options);
    this.out = new Linear(4 * width, width, options);
  }

  forward(x: Tensor): Tensor {
    const attended = x.add(this.proj.forward(this.#attention(this.ln1.forward(x))));
    return attended.add(this.out.forward(gelu(this.fc.forward(this.ln2.forward(attended)))));
  }

  #attention(x: Tensor): Tensor {
    const [batch, length, width] = x.shape as [number, number, number];
    const perHead = width / this.heads;
    const heads = this.qkv.forward(x).reshape([batch, length, 3, this.heads, perHead]).permute([2, 0, 3, 1, 4]);
    const [q, k, v] = [0, 1, 2].map((part) =>
      heads.slice(part, part + 1).reshape([batch, this.heads, length, perHead]),
    ) as [Tensor, Tensor, Tensor];
    const seen = scaledDotProductAttention(q, k, v, { isCausal: true });
    return seen.permute([0, 2, 1, 3]).reshape([batch, length, width]);
  }
}

/**
 * Logits [batch, length, tokens] of each next token, from tokens [batch, length].
 *
 * @example
 * const model = new Gpt({ tokens: 64, width: 32, length: 16, blocks: 2, heads: 2 });
 */
export class Gpt extends Module {
  readonly tok: Embedding;
  readonly pos: Embedding;
  readonly blocks: readonly Block[];
  readonly ln: LayerNorm;
  readonly head: Linear;
  readonly length: number;
  readonly #positions: Tensor;

  constructor({ tokens, width, length, blocks, heads, ...options }: GptOptions) {
    super();
    this.length = length;
    this.tok = new Embedding(tokens, width, options);
    this.pos = new Embedding(length, width, options);
    this.blocks = Array.from({ length: blocks }, () => new Block(width, heads, options));
    const { device, dtype } = options;
    this.ln = new LayerNorm(width, { device, dtype });
    this.head = new Linear(width, tokens, { ...options, bias: false });
    this.#positions = arange(length, { device });
  }

  forward(tokens: Tensor): Tensor {
    const length = tokens.shape[1]!;
    const embedded = this.tok.forward(tokens).add(this.pos.forward(this.#positions.slice(0, length)));
    const hidden = this.blocks.reduce((x, block) => block.forward(x), embedded);
    return this.head.forward(this.ln.forward(hidden));
  }
}
