import { clipGradNorm, type DType, type Tensor } from "@opt/core";
import { Conv2d, interpolate, Module, PixelShuffle, PReLU, Sequential, smoothL1Loss } from "@opt/nn";
import { Adam } from "@opt/optim";

class SuperResolution extends Module {
  features = new Sequential(new Conv2d(1, 8, 5, { padding: 2 }), new PReLU(8), new Conv2d(8, 4, 3, { padding: 1 }));
  shuffle = new PixelShuffle(2);

  forward(small: Tensor): Tensor {
    const details = this.shuffle.forward(this.features.forward(small));
    return interpolate(small, { scaleFactor: 2, mode: "bilinear" }).add(details);
  }
}

export function program(dtype: DType) {
  const model = new SuperResolution().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 1e-2 });

  function step(large: Tensor) {
    const small = interpolate(large, { scaleFactor: 0.5, mode: "nearest" });
    const loss = smoothL1Loss(model.forward(small), large, { beta: 0.1 });
    optimizer.zeroGrad();
    loss.backward();
    clipGradNorm(model.parameters(), 0.5);
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
