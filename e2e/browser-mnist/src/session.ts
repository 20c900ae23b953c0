/** The model, its optimizer, and steps of training. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Generator, noGrad, type Tensor, tensor, tidy } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { type Digits, PIXELS } from "./digits";

export const OPTIMIZERS = {
  NAdam: (model: Sequential) => new NAdam(model.namedParameters()),
  AdamW: (model: Sequential) => new AdamW(model.namedParameters()),
  AMSGrad: (model: Sequential) => new Adam(model.namedParameters(), { amsgrad: true }),
} as const;

export type OptimizerName = keyof typeof OPTIMIZERS;

const HIDDEN = 128;
export const BATCH = 128;

export class Session {
  readonly model: Sequential;
  readonly optimizer: NAdam | Adam | AdamW;
  steps = 0;
  private readonly generator = new Generator(1);
  private order: Int32Array;
  private position = 0;

  constructor(
    private readonly training: Digits,
    readonly optimizerName: OptimizerName,
  ) {
    const { generator } = this;
    this.model = new Sequential(
      new Linear(PIXELS, HIDDEN, { generator }),
      new ReLU(),
      new Linear(HIDDEN, 10, { generator }),
    );
    this.optimizer = OPTIMIZERS[optimizerName](this.model);
    this.order = generator.permutation(training.count);
  }

  /** Trains on the next batch. The loss is still on the device. */
  step(): Tensor {
    if (this.position + BATCH > this.training.count) {
      this.order = this.generator.permutation(this.training.count);
      this.position = 0;
    }
    const positions = this.order.subarray(this.position, this.position + BATCH);
    this.position += BATCH;
    this.steps++;
    return tidy(() => {
      const { images, labels } = batchOf(this.training, positions);
      const loss = crossEntropy(this.model.forward(images), labels);
      loss.backward();
      this.optimizer.step();
      this.optimizer.zeroGrad();
      return loss.detach();
    });
  }

  /** The names that the model gives to digits. */
  async predict(digits: Digits, positions: Int32Array): Promise<ArrayLike<number>> {
    const named = tidy(() => noGrad(() => this.model.forward(batchOf(digits, positions).images).argmax(-1)));
    const names = await named.data();
    named.dispose();
    return names;
  }

  dispose(): void {
    this.optimizer.zeroGrad();
    for (const state of Object.values(this.optimizer.stateDict().state)) {
      for (const value of Object.values(state)) if (typeof value === "object") value.dispose();
    }
    for (const parameter of this.model.parameters()) parameter.dispose();
  }
}

function batchOf({ pixels, labels }: Digits, positions: Int32Array): { images: Tensor; labels: Uint8Array } {
  const bytes = new Uint8Array(positions.length * PIXELS);
  positions.forEach((position, row) => {
    bytes.set(pixels.subarray(position * PIXELS, (position + 1) * PIXELS), row * PIXELS);
  });
  const images = tensor(bytes, { shape: [positions.length, PIXELS] }).div(255);
  return { images, labels: Uint8Array.from(positions, (position) => labels[position]!) };
}
