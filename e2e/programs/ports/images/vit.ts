import { concat, type DType, flatten, parameter, randn, type Tensor, zeros } from "@opt/core";
import { Conv2d, crossEntropy, LayerNorm, Linear, Module, TransformerEncoder, TransformerEncoderLayer } from "@opt/nn";
import { AdamW } from "@opt/optim";

class ViT extends Module {
  patches = new Conv2d(3, 8, 4, { stride: 4 });
  cls = parameter(zeros([1, 1, 8]));
  positions = parameter(randn([1, 5, 8]).mul(0.02));
  encoder = new TransformerEncoder(
    new TransformerEncoderLayer(8, 2, {
      dimFeedforward: 16,
      dropout: 0,
      activation: "gelu",
      batchFirst: true,
      normFirst: true,
    }),
    2,
    { norm: new LayerNorm(8) },
  );
  head = new Linear(8, 5);

  forward(images: Tensor): Tensor {
    const patches = flatten(this.patches.forward(images), 2).transpose(1, 2);
    const cls = this.cls.expand([images.shape[0]!, -1, -1]);
    const tokens = concat([cls, patches], 1).add(this.positions);
    return this.head.forward(this.encoder.forward(tokens).select(1, 0));
  }
}

export function program(dtype: DType) {
  const model = new ViT().to(dtype);
  const optimizer = new AdamW(model.namedParameters(), { lr: 3e-3, weightDecay: 0.05 });

  function step(images: Tensor, labels: Tensor) {
    const loss = crossEntropy(model.forward(images), labels);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  }
  return { models: { model }, step };
}
