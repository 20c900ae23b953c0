/** The model, its optimizer, and steps of training. */
import { type Compiled, compile, Generator, noGrad, type Tensor, tensor, tidy } from "@opt/core";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { type Digits, PIXELS } from "./digits";
import { OPTIMIZERS, type OptimizerName, type Trainer } from "./optimizers";

const HIDDEN = 128;
const TEST_BATCH = 1000;
export const BATCH = 128;

export interface Settings {
  readonly optimizer: OptimizerName;
  readonly lr: number;
  readonly device: string;
}

/** Where a run stands in the order of the images: the generator as it was before the epoch's permutation. */
export interface Progress {
  readonly steps: number;
  readonly position: number;
  readonly generator: ReturnType<Generator["stateDict"]>;
}

/** On the default device. */
export class Session {
  readonly model: Sequential;
  readonly optimizer: Trainer;
  steps = 0;
  private readonly trainOn: Compiled<[images: Tensor, labels: Tensor], Tensor>;
  private readonly logits: Compiled<[images: Tensor], Tensor>;
  private readonly generator = new Generator(1);
  private epoch: Progress["generator"];
  private order: Int32Array;
  private position = 0;

  constructor(
    private readonly training: Digits,
    readonly settings: Settings,
  ) {
    const { generator } = this;
    this.model = new Sequential(
      new Linear(PIXELS, HIDDEN, { generator }),
      new ReLU(),
      new Linear(HIDDEN, 10, { generator }),
    );
    this.optimizer = OPTIMIZERS[settings.optimizer].make(this.model.namedParameters(), settings.lr);
    this.trainOn = compile((images, labels) => {
      const loss = crossEntropy(this.model.forward(images.div(255)), labels);
      loss.backward();
      this.optimizer.step();
      this.optimizer.zeroGrad();
      return loss;
    });
    this.logits = compile((images) => noGrad(() => this.model.forward(images)));
    this.epoch = generator.stateDict();
    this.order = generator.permutation(training.count);
  }

  get progress(): Progress {
    return { steps: this.steps, position: this.position, generator: this.epoch };
  }

  set progress({ steps, position, generator }: Progress) {
    this.generator.loadStateDict(generator);
    this.shuffle();
    this.steps = steps;
    this.position = position;
  }

  private shuffle(): void {
    this.epoch = this.generator.stateDict();
    this.order = this.generator.permutation(this.training.count);
    this.position = 0;
  }

  /** Trains on the next batch. The loss is still on the device. */
  step(): Tensor {
    if (this.position + BATCH > this.training.count) this.shuffle();
    const positions = this.order.subarray(this.position, this.position + BATCH);
    this.position += BATCH;
    this.steps++;
    return tidy(() => this.trainOn(imagesOf(this.training, positions), labelsOf(this.training, positions)));
  }

  /** The names that the model gives to digits. */
  async predict(digits: Digits, positions: Int32Array): Promise<ArrayLike<number>> {
    return taken(tidy(() => this.logits(imagesOf(digits, positions).div(255)).argmax(-1)));
  }

  /** The probability of each name for one image, in [0, 1]. */
  async probabilities(image: Float32Array): Promise<ArrayLike<number>> {
    return taken(tidy(() => this.logits(tensor(image, { shape: [1, PIXELS] })).softmax()));
  }

  /** Share of the digits that the model names rightly. */
  async accuracy(digits: Digits): Promise<number> {
    let right = 0;
    for (let start = 0; start < digits.count; start += TEST_BATCH) {
      const positions = Int32Array.from({ length: Math.min(TEST_BATCH, digits.count - start) }, (_, i) => start + i);
      const names = await this.predict(digits, positions);
      for (let i = 0; i < names.length; i++) if (names[i] === digits.labels[start + i]) right++;
    }
    return right / digits.count;
  }

  dispose(): void {
    for (const compiled of [this.trainOn, this.logits]) compiled.dispose();
    this.optimizer.dispose();
    for (const parameter of this.model.parameters()) parameter.dispose();
  }
}

async function taken(result: Tensor): Promise<ArrayLike<number>> {
  try {
    return await result.data();
  } finally {
    result.dispose();
  }
}

function imagesOf({ pixels }: Digits, positions: Int32Array): Tensor {
  const bytes = new Uint8Array(positions.length * PIXELS);
  positions.forEach((position, row) => {
    bytes.set(pixels.subarray(position * PIXELS, (position + 1) * PIXELS), row * PIXELS);
  });
  return tensor(bytes, { shape: [positions.length, PIXELS] });
}

const labelsOf = ({ labels }: Digits, positions: Int32Array): Tensor =>
  tensor(Uint8Array.from(positions, (position) => labels[position]!));
