import { type DType, flatten, type Tensor } from "@opt/core";
import { CosineAnnealingLR } from "@opt/core/schedules";
import { AdaptiveAvgPool2d, BatchNorm2d, Conv2d, crossEntropy, Identity, Linear, Module, Sequential } from "@opt/nn";
import { SGD } from "@opt/optim";

class Block extends Module {
  conv1: Conv2d;
  bn1: BatchNorm2d;
  conv2: Conv2d;
  bn2: BatchNorm2d;
  downsample: Sequential | Identity;

  constructor(inChannels: number, outChannels: number, stride: number) {
    super();
    this.conv1 = new Conv2d(inChannels, outChannels, 3, { stride, padding: 1, bias: false });
    this.bn1 = new BatchNorm2d(outChannels);
    this.conv2 = new Conv2d(outChannels, outChannels, 3, { padding: 1, bias: false });
    this.bn2 = new BatchNorm2d(outChannels);
    const project = () =>
      new Sequential(new Conv2d(inChannels, outChannels, 1, { stride, bias: false }), new BatchNorm2d(outChannels));
    this.downsample = stride === 1 && inChannels === outChannels ? new Identity() : project();
  }

  forward(x: Tensor): Tensor {
    const hidden = this.bn1.forward(this.conv1.forward(x)).relu();
    return this.bn2.forward(this.conv2.forward(hidden)).add(this.downsample.forward(x)).relu();
  }
}

class ResNet extends Module {
  conv1 = new Conv2d(3, 4, 3, { padding: 1, bias: false });
  bn1 = new BatchNorm2d(4);
  layers = new Sequential(new Block(4, 4, 1), new Block(4, 8, 2));
  pool = new AdaptiveAvgPool2d(1);
  fc = new Linear(8, 5);

  forward(x: Tensor): Tensor {
    const features = this.layers.forward(this.bn1.forward(this.conv1.forward(x)).relu());
    return this.fc.forward(flatten(this.pool.forward(features), 1));
  }
}

export function program(dtype: DType) {
  const model = new ResNet().to(dtype);
  const optimizer = new SGD(model.namedParameters(), { lr: 0.1, momentum: 0.9, weightDecay: 5e-4, nesterov: true });
  const schedule = new CosineAnnealingLR(optimizer, { tMax: 30 });

  function step(images: Tensor, labels: Tensor) {
    const loss = crossEntropy(model.forward(images), labels, { labelSmoothing: 0.1 });
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step, endEpoch: () => schedule.step() };
}
