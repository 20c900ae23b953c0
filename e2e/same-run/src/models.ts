/** The models that are trained everywhere, each with the loss of one batch. */
import { type Generator, rand, randn, type Tensor } from "@opt/core";
import {
  AvgPool2d,
  BatchNorm2d,
  Conv2d,
  crossEntropy,
  Flatten,
  GELU,
  LayerNorm,
  Linear,
  LSTM,
  MaxPool2d,
  Module,
  ReLU,
  Sequential,
  Tanh,
} from "@opt/nn";
import { Gpt } from "@opt-e2e/tiny-gpt";

export interface Task {
  readonly model: Module;
  /** A batch, drawn from the generator. */
  batch(): { readonly input: Tensor; readonly labels: Tensor };
  loss(input: Tensor, labels: Tensor): Tensor;
}

const CLASSES = 10;

class SequenceClassifier extends Module {
  readonly lstm: LSTM;
  readonly head: Linear;

  constructor(generator: Generator) {
    super();
    this.lstm = new LSTM(12, 20, { batchFirst: true, generator });
    this.head = new Linear(20, CLASSES, { generator });
  }

  forward(x: Tensor): Tensor {
    const [output] = this.lstm.forward(x);
    return this.head.forward(output.mean(1));
  }
}

/** Integers below `count`. */
const integers = (shape: readonly number[], count: number, generator: Generator) =>
  rand(shape, { generator }).mul(count).to("i32");

function classifier(
  model: Module & { forward(x: Tensor): Tensor },
  shape: readonly number[],
  generator: Generator,
): Task {
  return {
    model,
    batch: () => ({ input: randn(shape, { generator }), labels: integers([shape[0]!], CLASSES, generator) }),
    loss: (input, labels) => crossEntropy(model.forward(input), labels),
  };
}

export const tasks = {
  mlp: (generator: Generator): Task => {
    const [first, second, last] = [
      [50, 64],
      [64, 33],
      [33, CLASSES],
    ].map(([inputs, outputs]) => new Linear(inputs!, outputs!, { generator })) as [Linear, Linear, Linear];
    return classifier(
      new Sequential(first, new ReLU(), new LayerNorm(64), second, new GELU(), last),
      [16, 50],
      generator,
    );
  },
  cnn: (generator: Generator): Task => {
    const model = new Sequential(
      new Conv2d(1, 6, 3, { padding: 1, generator }),
      new BatchNorm2d(6),
      new Tanh(),
      new MaxPool2d(2),
      new Conv2d(6, 8, 3, { generator }),
      new ReLU(),
      new AvgPool2d(2),
      new Flatten(),
      new Linear(32, CLASSES, { generator }),
    );
    return classifier(model, [8, 1, 12, 12], generator);
  },
  gpt: (generator: Generator): Task => {
    const model = new Gpt({ tokens: 30, width: 32, length: 12, blocks: 2, heads: 2, generator });
    const tokens = () => integers([4, 12], 30, generator);
    return {
      model,
      batch: () => ({ input: tokens(), labels: tokens() }),
      loss: (input, labels) => crossEntropy(model.forward(input), labels),
    };
  },
  lstm: (generator: Generator): Task => classifier(new SequenceClassifier(generator), [6, 9, 12], generator),
};
