import type { DType, Tensor } from "@opt/core";
import { Conv1d, ctcLoss, Linear, LSTM, Module } from "@opt/nn";
import { Adam } from "@opt/optim";

class Recognizer extends Module {
  conv = new Conv1d(4, 6, 3, { padding: 1 });
  lstm = new LSTM(6, 5, { bidirectional: true });
  output = new Linear(10, 5);

  forward(sounds: Tensor): Tensor {
    const [hidden] = this.lstm.forward(this.conv.forward(sounds).relu().permute([2, 0, 1]));
    return this.output.forward(hidden).logSoftmax(-1);
  }
}

export function program(dtype: DType) {
  const model = new Recognizer().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 1e-2 });

  function step(sounds: Tensor, texts: Tensor, soundLengths: Tensor, textLengths: Tensor) {
    const loss = ctcLoss(model.forward(sounds), texts, soundLengths, textLengths, { zeroInfinity: true });
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
