import { clipGradNorm, type DType, type Tensor, zeros } from "@opt/core";
import { crossEntropy, Embedding, Linear, LSTM, Module } from "@opt/nn";
import { SGD } from "@opt/optim";

class LanguageModel extends Module {
  encoder = new Embedding(11, 6);
  rnn = new LSTM(6, 8, { numLayers: 2 });
  decoder = new Linear(8, 11);

  forward(tokens: Tensor, state: [Tensor, Tensor]): [Tensor, [Tensor, Tensor]] {
    const [output, next] = this.rnn.forward(this.encoder.forward(tokens), state);
    return [this.decoder.forward(output), next];
  }
}

export function program(dtype: DType) {
  const model = new LanguageModel().to(dtype);
  const optimizer = new SGD(model.namedParameters(), { lr: 1 });
  const state: [Tensor, Tensor] = [zeros([2, 3, 8], { dtype }), zeros([2, 3, 8], { dtype })];

  function step(tokens: Tensor, targets: Tensor) {
    const [logits, [hidden, cell]] = model.forward(tokens, [state[0].clone(), state[1].clone()]);
    const loss = crossEntropy(logits, targets);
    optimizer.zeroGrad();
    loss.backward();
    clipGradNorm(model.parameters(), 0.25);
    optimizer.step();
    state[0].set(hidden);
    state[1].set(cell);
    return loss;
  }
  return { models: { model }, step };
}
