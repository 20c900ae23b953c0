import { arange, chunk, clipGradNorm, type DType, gelu, type Tensor } from "@opt/core";
import { crossEntropy, Embedding, LayerNorm, Linear, Module, ModuleList, scaledDotProductAttention } from "@opt/nn";
import { AdamW } from "@opt/optim";

const WIDTH = 8;
const HEADS = 2;

class Attention extends Module {
  c_attn = new Linear(WIDTH, 3 * WIDTH);
  c_proj = new Linear(WIDTH, WIDTH);

  forward(x: Tensor): Tensor {
    const [batch, length] = x.shape as [number, number];
    const heads = (part: Tensor) => part.reshape([batch, length, HEADS, -1]).transpose(1, 2);
    const [q, k, v] = chunk(this.c_attn.forward(x), 3, -1).map(heads) as [Tensor, Tensor, Tensor];
    const seen = scaledDotProductAttention(q, k, v, { isCausal: true });
    return this.c_proj.forward(seen.transpose(1, 2).reshape([batch, length, WIDTH]));
  }
}

class Block extends Module {
  ln_1 = new LayerNorm(WIDTH);
  attn = new Attention();
  ln_2 = new LayerNorm(WIDTH);
  c_fc = new Linear(WIDTH, 4 * WIDTH);
  c_proj = new Linear(4 * WIDTH, WIDTH);

  forward(x: Tensor): Tensor {
    const attended = x.add(this.attn.forward(this.ln_1.forward(x)));
    const hidden = gelu(this.c_fc.forward(this.ln_2.forward(attended)), { approximate: "tanh" });
    return attended.add(this.c_proj.forward(hidden));
  }
}

class GPT extends Module {
  wte = new Embedding(11, WIDTH);
  wpe = new Embedding(6, WIDTH);
  blocks = new ModuleList([new Block(), new Block()]);
  ln_f = new LayerNorm(WIDTH);
  lm_head = new Linear(WIDTH, 11, { bias: false });

  constructor() {
    super();
    this.wte.weight = this.lm_head.weight;
  }

  forward(tokens: Tensor): Tensor {
    let x = this.wte.forward(tokens).add(this.wpe.forward(arange(tokens.shape[1]!)));
    for (const block of this.blocks) x = block.forward(x);
    return this.lm_head.forward(this.ln_f.forward(x));
  }
}

export function program(dtype: DType) {
  const model = new GPT().to(dtype);
  const matrices = model.parameters().filter(({ shape }) => shape.length >= 2);
  const vectors = model.parameters().filter(({ shape }) => shape.length < 2);
  const groups = [
    { params: matrices, weightDecay: 0.1 },
    { params: vectors, weightDecay: 0 },
  ];
  const optimizer = new AdamW(groups, { lr: 3e-3, betas: [0.9, 0.95] });

  function step(tokens: Tensor, targets: Tensor) {
    const loss = crossEntropy(model.forward(tokens), targets);
    loss.backward();
    clipGradNorm(model.parameters(), 1);
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  }
  return { models: { model }, step };
}
