import { clipGradNorm, type DType, type Tensor } from "@opt/core";
import { crossEntropy, EmbeddingBag, Linear, Module } from "@opt/nn";
import { SGD } from "@opt/optim";

class TextClassifier extends Module {
  embedding = new EmbeddingBag(20, 6);
  fc = new Linear(6, 4);

  forward(words: Tensor, offsets: Tensor): Tensor {
    return this.fc.forward(this.embedding.forward(words, { offsets }));
  }
}

export function program(dtype: DType) {
  const model = new TextClassifier().to(dtype);
  const optimizer = new SGD(model.namedParameters(), { lr: 2 });

  function step(words: Tensor, offsets: Tensor, labels: Tensor) {
    optimizer.zeroGrad();
    const loss = crossEntropy(model.forward(words, offsets), labels);
    loss.backward();
    clipGradNorm(model.parameters(), 0.1);
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
