/** A language model of two LSTM layers of 650, 10,000 words, 20 texts of 35 words (the medium one of Zaremba et al. 2014), without dropout. */
import { type Tensor, tensor } from "@opt/core";
import { crossEntropy, Embedding, Linear, LSTM, Module } from "@opt/nn";
import { integers } from "../nn/values";
import type { RealTask } from "./task";

const [LENGTH, BATCH, WORDS, WIDTH] = [35, 20, 10_000, 650];

class LanguageModel extends Module {
  readonly embedding = new Embedding(WORDS, WIDTH);
  readonly lstm = new LSTM(WIDTH, WIDTH, { numLayers: 2 });
  readonly head = new Linear(WIDTH, WORDS);

  forward(words: Tensor): Tensor {
    const [hidden] = this.lstm.forward(this.embedding.forward(words));
    return this.head.forward(hidden).reshape([-1, WORDS]);
  }
}

export function lstm(): RealTask {
  const model = new LanguageModel();
  return {
    model,
    batch: (index) =>
      [104_729, 1299].map((factor) =>
        tensor(integers(LENGTH * BATCH, factor + 2 * index, WORDS), { shape: [LENGTH, BATCH] }),
      ),
    loss: (words, next) => crossEntropy(model.forward(words!), next!.reshape([-1])),
    optimizer: "AdamW",
    lr: 1e-3,
  };
}
