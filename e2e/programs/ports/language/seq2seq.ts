import { concat, type DType, stack, type Tensor } from "@opt/core";
import { crossEntropy, Embedding, GRU, GRUCell, Linear, Module } from "@opt/nn";
import { Adam } from "@opt/optim";

class Attention extends Module {
  query = new Linear(8, 8);
  key = new Linear(8, 8);
  score = new Linear(8, 1);

  forward(hidden: Tensor, memory: Tensor): Tensor {
    const scores = this.score.forward(this.query.forward(hidden).unsqueeze(1).add(this.key.forward(memory)).tanh());
    return scores.softmax(1).mul(memory).sum(1);
  }
}

class Seq2Seq extends Module {
  source = new Embedding(9, 6, { paddingIdx: 0 });
  target = new Embedding(9, 6, { paddingIdx: 0 });
  encoder = new GRU(6, 8, { batchFirst: true });
  attention = new Attention();
  cell = new GRUCell(14, 8);
  output = new Linear(8, 9);

  forward(source: Tensor, target: Tensor): Tensor {
    const [memory, last] = this.encoder.forward(this.source.forward(source));
    const inputs = this.target.forward(target);
    let hidden = last.select(0, 0);
    const logits: Tensor[] = [];
    for (let i = 0; i < target.shape[1]!; i++) {
      const context = this.attention.forward(hidden, memory);
      hidden = this.cell.forward(concat([inputs.select(1, i), context], 1), hidden);
      logits.push(this.output.forward(hidden));
    }
    return stack(logits, 1);
  }
}

export function program(dtype: DType) {
  const model = new Seq2Seq().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 1e-2 });

  function step(source: Tensor, target: Tensor) {
    const logits = model.forward(source, target.slice(0, -1, 1));
    const loss = crossEntropy(logits, target.slice(1, undefined, 1), { ignoreIndex: 0 });
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
