import { type DType, oneHot, type Tensor } from "@opt/core";
import { GRU, Linear, Module, nllLoss, RNN } from "@opt/nn";
import { RMSprop } from "@opt/optim";

class Classifier extends Module {
  rnn = new RNN(7, 8, { batchFirst: true });
  gru = new GRU(8, 8, { batchFirst: true });
  output = new Linear(8, 4);

  forward(letters: Tensor): Tensor {
    const [sequence] = this.rnn.forward(oneHot(letters, 7).to(this.output.weight.dtype));
    const [, hidden] = this.gru.forward(sequence);
    return this.output.forward(hidden.select(0, -1)).logSoftmax(-1);
  }
}

export function program(dtype: DType) {
  const model = new Classifier().to(dtype);
  const optimizer = new RMSprop(model.namedParameters(), { lr: 1e-3, momentum: 0.9 });

  function step(letters: Tensor, labels: Tensor) {
    const loss = nllLoss(model.forward(letters), labels);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
