import type { DType, Tensor } from "@opt/core";
import { binaryCrossEntropy, Linear, Module } from "@opt/nn";
import { Adam } from "@opt/optim";

class VAE extends Module {
  fc1 = new Linear(16, 12);
  fc21 = new Linear(12, 3);
  fc22 = new Linear(12, 3);
  fc3 = new Linear(3, 12);
  fc4 = new Linear(12, 16);

  forward(x: Tensor, noise: Tensor): [Tensor, Tensor, Tensor] {
    const hidden = this.fc1.forward(x).relu();
    const mean = this.fc21.forward(hidden);
    const logVariance = this.fc22.forward(hidden);
    const z = mean.add(noise.mul(logVariance.mul(0.5).exp()));
    return [this.fc4.forward(this.fc3.forward(z).relu()).sigmoid(), mean, logVariance];
  }
}

export function program(dtype: DType) {
  const model = new VAE().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 1e-2 });

  function step(x: Tensor, noise: Tensor) {
    const [reconstructed, mean, logVariance] = model.forward(x, noise);
    const error = binaryCrossEntropy(reconstructed, x, { reduction: "sum" });
    const divergence = logVariance.add(1).sub(mean.square()).sub(logVariance.exp()).sum().mul(-0.5);
    const loss = error.add(divergence);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
