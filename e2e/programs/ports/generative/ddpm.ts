import {
  arange,
  concat,
  cos,
  cumprod,
  type DType,
  ExponentialMovingAverage,
  gather,
  linspace,
  silu,
  sin,
  type Tensor,
} from "@opt/core";
import { Conv2d, GroupNorm, Linear, Module, mseLoss, Sequential, SiLU } from "@opt/nn";
import { AdamW } from "@opt/optim";

const STEPS = 20;

class Denoiser extends Module {
  time = new Sequential(new Linear(8, 8), new SiLU());
  begin = new Conv2d(1, 8, 3, { padding: 1 });
  norm = new GroupNorm(4, 8);
  end = new Conv2d(8, 1, 3, { padding: 1 });

  forward(x: Tensor, t: Tensor): Tensor {
    const frequencies = arange(4, { dtype: x.dtype })
      .mul(-Math.log(10000) / 4)
      .exp();
    const angles = t.to(x.dtype).unsqueeze(1).mul(frequencies);
    const time = this.time.forward(concat([sin(angles), cos(angles)], 1));
    const hidden = this.norm.forward(this.begin.forward(x)).add(time.unsqueeze(-1).unsqueeze(-1));
    return this.end.forward(silu(hidden));
  }
}

export function program(dtype: DType) {
  const model = new Denoiser().to(dtype);
  const optimizer = new AdamW(model.namedParameters(), { lr: 1e-2 });
  const average = new ExponentialMovingAverage(model.namedParameters(), { decay: 0.99 });
  const betas = linspace(1e-4, 0.2, STEPS, { dtype });
  const kept = cumprod(betas.neg().add(1), 0);

  function step(images: Tensor, noise: Tensor, t: Tensor) {
    const share = gather(kept, t).reshape([-1, 1, 1, 1]);
    const noisy = share.sqrt().mul(images).add(share.neg().add(1).sqrt().mul(noise));
    const loss = mseLoss(model.forward(noisy, t), noise);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    average.update();
    return loss;
  }
  return { models: { model }, step };
}
