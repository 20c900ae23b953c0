/** ResNet-18 for CIFAR (He et al. 2015): blocks of two 3 x 3 convolutions, 64 to 512 channels, 32 x 32 to 4 x 4. */
import { type Tensor, tensor } from "@opt/core";
import { BatchNorm2d, Conv2d, crossEntropy, Linear, Module, ModuleList, Sequential } from "@opt/nn";
import { integers, values } from "../nn/values";
import type { RealTask } from "./task";

const BATCH = 64;

const convolution = (from: number, to: number, size: number, stride: number) =>
  new Conv2d(from, to, size, { stride, padding: (size - 1) / 2, bias: false });

class Block extends Module {
  readonly conv1: Conv2d;
  readonly bn1: BatchNorm2d;
  readonly conv2: Conv2d;
  readonly bn2: BatchNorm2d;
  readonly down: Sequential | null;

  constructor(from: number, to: number, stride: number) {
    super();
    this.conv1 = convolution(from, to, 3, stride);
    this.bn1 = new BatchNorm2d(to);
    this.conv2 = convolution(to, to, 3, 1);
    this.bn2 = new BatchNorm2d(to);
    const fits = from === to && stride === 1;
    this.down = fits ? null : new Sequential(convolution(from, to, 1, stride), new BatchNorm2d(to));
  }

  forward(x: Tensor): Tensor {
    const hidden = this.bn1.forward(this.conv1.forward(x)).relu();
    const result = this.bn2.forward(this.conv2.forward(hidden));
    return result.add(this.down?.forward(x) ?? x).relu();
  }
}

class ResNet extends Module {
  readonly conv = convolution(3, 64, 3, 1);
  readonly bn = new BatchNorm2d(64);
  readonly blocks = new ModuleList(
    [64, 128, 256, 512].flatMap((width, i) => [
      new Block(Math.max(64, width / 2), width, i === 0 ? 1 : 2),
      new Block(width, width, 1),
    ]),
  );
  readonly fc = new Linear(512, 10);

  forward(x: Tensor): Tensor {
    let hidden = this.bn.forward(this.conv.forward(x)).relu();
    for (const block of this.blocks) hidden = block.forward(hidden);
    return this.fc.forward(hidden.mean([2, 3]));
  }
}

export function resnet(): RealTask {
  const model = new ResNet();
  return {
    model,
    batch: (index) => [
      tensor(values(BATCH * 3 * 32 * 32, 104_729 + 2 * index), { shape: [BATCH, 3, 32, 32] }),
      tensor(integers(BATCH, 1299 + 2 * index, 10), { shape: [BATCH] }),
    ],
    loss: (images, labels) => crossEntropy(model.forward(images!), labels!),
    optimizer: "AdamW",
    lr: 1e-4, // with 1e-3 PyTorch's own eager and compiled third losses differ by 3e-3
  };
}
