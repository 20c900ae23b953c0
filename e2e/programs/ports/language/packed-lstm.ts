import { concat, type DType, type Tensor } from "@opt/core";
import { bceWithLogits, Embedding, Linear, LSTM, Module } from "@opt/nn";
import { Adam } from "@opt/optim";

class Sentiment extends Module {
  embedding = new Embedding(11, 6, { paddingIdx: 0 });
  lstm = new LSTM(6, 5, { numLayers: 2, bidirectional: true, batchFirst: true });
  output = new Linear(10, 1);

  forward(tokens: Tensor, lengths: Tensor): Tensor {
    const [, [hidden]] = this.lstm.forward(this.embedding.forward(tokens), undefined, { lengths });
    return this.output.forward(concat([hidden.select(0, -2), hidden.select(0, -1)], 1)).squeeze(1);
  }
}

export function program(dtype: DType) {
  const model = new Sentiment().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 1e-2 });

  function step(tokens: Tensor, lengths: Tensor, labels: Tensor) {
    const loss = bceWithLogits(model.forward(tokens, lengths), labels);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
