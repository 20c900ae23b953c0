import { type DType, flatten, maxPool2d, type Tensor } from "@opt/core";
import { StepLR } from "@opt/core/schedules";
import { Conv2d, Linear, Module, nllLoss } from "@opt/nn";
import { Adadelta } from "@opt/optim";

class Net extends Module {
  conv1 = new Conv2d(1, 4, 3);
  conv2 = new Conv2d(4, 8, 3);
  fc1 = new Linear(32, 16);
  fc2 = new Linear(16, 10);

  forward(x: Tensor): Tensor {
    const features = this.conv2.forward(this.conv1.forward(x).relu()).relu();
    const hidden = this.fc1.forward(flatten(maxPool2d(features, 2), 1)).relu();
    return this.fc2.forward(hidden).logSoftmax(1);
  }
}

export function program(dtype: DType) {
  const model = new Net().to(dtype);
  const optimizer = new Adadelta(model.namedParameters(), { lr: 1 });
  const schedule = new StepLR(optimizer, { stepSize: 1, gamma: 0.9 });

  function step(images: Tensor, labels: Tensor) {
    optimizer.zeroGrad();
    const loss = nllLoss(model.forward(images), labels);
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step, endEpoch: () => schedule.step() };
}
