import { concat, type DType, type Tensor } from "@opt/core";
import {
  bceWithLogits,
  Conv2d,
  ConvTranspose2d,
  GroupNorm,
  MaxPool2d,
  Module,
  ReLU,
  Sequential,
  Upsample,
} from "@opt/nn";
import { AdamW } from "@opt/optim";

const block = (inChannels: number, outChannels: number) =>
  new Sequential(
    new Conv2d(inChannels, outChannels, 3, { padding: "same" }),
    new GroupNorm(2, outChannels),
    new ReLU(),
  );

class UNet extends Module {
  down1 = block(1, 4);
  down2 = block(4, 8);
  middle = block(8, 8);
  up2 = new ConvTranspose2d(8, 8, 2, { stride: 2 });
  merge2 = block(16, 4);
  up1 = new Upsample({ scaleFactor: 2, mode: "bilinear", alignCorners: true });
  merge1 = block(8, 4);
  head = new Conv2d(4, 1, 1);
  pool = new MaxPool2d(2);

  forward(x: Tensor): Tensor {
    const large = this.down1.forward(x);
    const small = this.down2.forward(this.pool.forward(large));
    const middle = this.middle.forward(this.pool.forward(small));
    const merged = this.merge2.forward(concat([this.up2.forward(middle), small], 1));
    return this.head.forward(this.merge1.forward(concat([this.up1.forward(merged), large], 1)));
  }
}

function diceLoss(logits: Tensor, masks: Tensor): Tensor {
  const probabilities = logits.sigmoid();
  const shared = probabilities.mul(masks).sum([1, 2, 3]);
  const all = probabilities.add(masks).sum([1, 2, 3]);
  return shared.mul(2).add(1).div(all.add(1)).mean().neg().add(1);
}

export function program(dtype: DType) {
  const model = new UNet().to(dtype);
  const optimizer = new AdamW(model.namedParameters(), { lr: 1e-2 });

  function step(images: Tensor, masks: Tensor) {
    const logits = model.forward(images);
    const loss = bceWithLogits(logits, masks).add(diceLoss(logits, masks));
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
