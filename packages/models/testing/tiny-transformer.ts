/** A small transformer with the layer names of Llama, and batches for it. `peft_runs.py` has the same in PyTorch. */
import { type Device, Generator, recompute, silu, type Tensor } from "@opt/core";
import { Embedding, Linear, Module, RMSNorm, scaledDotProductAttention } from "@opt/nn";
import { Random } from "@opt/testkit";

export interface TinySizes {
  readonly tokens: number;
  readonly width: number;
  readonly hidden: number;
  readonly heads: number;
  readonly blocks: number;
}

export const SIZES: TinySizes = { tokens: 32, width: 16, hidden: 32, heads: 2, blocks: 2 };

class Block extends Module {
  readonly input_norm: RMSNorm;
  readonly q_proj: Linear;
  readonly k_proj: Linear;
  readonly v_proj: Linear;
  readonly o_proj: Linear;
  readonly post_norm: RMSNorm;
  readonly up_proj: Linear;
  readonly down_proj: Linear;

  constructor(
    { width, hidden }: TinySizes,
    private readonly heads: number,
    options: { device: Device; generator: Generator },
  ) {
    super();
    const { device } = options;
    this.input_norm = new RMSNorm(width, { eps: 1e-5, device });
    this.q_proj = new Linear(width, width, options);
    this.k_proj = new Linear(width, width, { ...options, bias: false });
    this.v_proj = new Linear(width, width, options);
    this.o_proj = new Linear(width, width, { ...options, bias: false });
    this.post_norm = new RMSNorm(width, { eps: 1e-5, device });
    this.up_proj = new Linear(width, hidden, { ...options, bias: false });
    this.down_proj = new Linear(hidden, width, { ...options, bias: false });
  }

  forward(x: Tensor): Tensor {
    const [batch, length, width] = x.shape as [number, number, number];
    const normal = this.input_norm.forward(x);
    const [q, k, v] = [this.q_proj, this.k_proj, this.v_proj].map((layer) =>
      layer
        .forward(normal)
        .reshape([batch, length, this.heads, width / this.heads])
        .transpose(1, 2),
    ) as [Tensor, Tensor, Tensor];
    const seen = scaledDotProductAttention(q, k, v, { isCausal: true }).transpose(1, 2).reshape([batch, length, width]);
    const attended = x.add(this.o_proj.forward(seen));
    return attended.add(this.down_proj.forward(silu(this.up_proj.forward(this.post_norm.forward(attended)))));
  }
}

export class TinyTransformer extends Module {
  readonly embed: Embedding;
  readonly layers: readonly Block[];
  readonly norm: RMSNorm;
  readonly head: Linear;

  constructor(
    sizes: TinySizes,
    device: Device,
    private readonly isRecomputed = false,
  ) {
    super();
    const options = { device, generator: new Generator(1) };
    this.embed = new Embedding(sizes.tokens, sizes.width, options);
    this.layers = Array.from({ length: sizes.blocks }, () => new Block(sizes, sizes.heads, options));
    this.norm = new RMSNorm(sizes.width, { eps: 1e-5, device });
    this.head = new Linear(sizes.width, sizes.tokens, { ...options, bias: false });
  }

  forward(tokens: Tensor): Tensor {
    const run = (x: Tensor, block: Block) =>
      this.isRecomputed ? recompute((each) => block.forward(each), x) : block.forward(x);
    return this.head.forward(this.norm.forward(this.layers.reduce(run, this.embed.forward(tokens))));
  }
}

/** Token numbers in rows, and labels that leave out every fifth. */
export function batchesOf(count: number, rows: number, length: number, tokens: number) {
  const random = new Random(3);
  const row = () => Array.from({ length }, () => random.below(tokens));
  return Array.from({ length: count }, () => {
    const input = Array.from({ length: rows }, row);
    return { input, labels: input.map((each) => each.map((token, i) => (i % 5 === 0 ? -100 : token))) };
  });
}
