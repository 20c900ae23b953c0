/** A small convolutional network on handwritten digits. */
import { type Tensor, tensor } from "@opt/core";
import { parseIdx, TensorDataset } from "@opt/data";
import { Conv2d, crossEntropy, Flatten, Linear, MaxPool2d, ReLU, Sequential } from "@opt/nn";
import { endless } from "./batches";
import type { Task } from "./task";

const IMAGES = "train-images-idx3-ubyte";
const LABELS = "train-labels-idx1-ubyte";
const SEEN = 2048;
const UNSEEN = 256;
const BATCH = 16;
const SIDE = 28;
/** Pixels that one pixel of the small images is the mean of, each way. */
const SHRINK = 2;

/** Rows `from` to `to` of the images at half their side, with values from 0 to 1, and their labels. */
function rows(images: Uint8Array, labels: Uint8Array, from: number, to: number) {
  const side = SIDE / SHRINK;
  const pixels = new Float32Array((to - from) * side * side);
  for (let i = 0; i < pixels.length; i++) {
    const image = from + Math.floor(i / (side * side));
    const [y, x] = [Math.floor(i / side) % side, i % side];
    let sum = 0;
    for (let dy = 0; dy < SHRINK; dy++)
      for (let dx = 0; dx < SHRINK; dx++)
        sum += images[image * SIDE * SIDE + (y * SHRINK + dy) * SIDE + x * SHRINK + dx]!;
    pixels[i] = sum / (255 * SHRINK * SHRINK);
  }
  return [
    { data: pixels, shape: [to - from, 1, side, side] },
    { data: Int32Array.from(labels.subarray(from, to)), shape: [to - from] },
  ] as const;
}

export const task: Task = {
  title: "CNN on digits",
  about: `Two convolutions and a linear layer on MNIST's first ${SEEN} digits at half their size, ${BATCH} a step. The loss is of the next ${UNSEEN} digits.`,
  budget: 120,
  restLr: 0.01,
  isMatrix: (_, { shape }) => shape.length === 4,
  files: [IMAGES, LABELS],
  async prepared(read) {
    const [images, labels] = (await Promise.all([read(IMAGES), read(LABELS)])).map((file) => parseIdx(file).data) as [
      Uint8Array,
      Uint8Array,
    ];
    const seen = new TensorDataset(...rows(images, labels, 0, SEEN));
    const unseen = rows(images, labels, SEEN, SEEN + UNSEEN);
    return ({ generator }) => {
      const model = new Sequential(
        new Conv2d(1, 8, 3, { padding: 1, generator }),
        new ReLU(),
        new MaxPool2d(2),
        new Conv2d(8, 16, 3, { padding: 1, generator }),
        new ReLU(),
        new MaxPool2d(2),
        new Flatten(),
        new Linear(16 * 9, 10, { generator }),
      );
      const loss = (images: Tensor, labels: Tensor) => crossEntropy(model.forward(images), labels);
      return {
        model,
        batches: endless(seen, BATCH, generator),
        loss,
        unseen: unseen.map(({ data, shape }) => tensor(data, { shape: [...shape] })),
        evaluation: loss,
      };
    };
  },
};
