import { arange, cos, type DType, flatten, sin, stack, type Tensor } from "@opt/core";
import { LambdaLR } from "@opt/core/schedules";
import { crossEntropy, Embedding, Linear, Module, Transformer } from "@opt/nn";
import { Adam } from "@opt/optim";

const WIDTH = 8;

function positionalEncoding(length: number): Tensor {
  const frequencies = arange(WIDTH / 2, { dtype: "f64" })
    .mul((-2 * Math.log(10000)) / WIDTH)
    .exp();
  const angles = arange(length, { dtype: "f64" }).unsqueeze(1).mul(frequencies);
  return flatten(stack([sin(angles), cos(angles)], 2), 1);
}

class Translator extends Module {
  source = new Embedding(9, WIDTH);
  target = new Embedding(9, WIDTH);
  positions = positionalEncoding(8);
  transformer = new Transformer(WIDTH, 2, {
    numEncoderLayers: 1,
    numDecoderLayers: 1,
    dimFeedforward: 16,
    dropout: 0,
    batchFirst: true,
  });
  output = new Linear(WIDTH, 9);

  forward(source: Tensor, target: Tensor): Tensor {
    const placed = (x: Tensor) => x.mul(Math.sqrt(WIDTH)).add(this.positions.slice(0, x.shape[1]!));
    const padding = source.eq(0);
    const decoded = this.transformer.forward(placed(this.source.forward(source)), placed(this.target.forward(target)), {
      tgtIsCausal: true,
      srcKeyPaddingMask: padding,
      tgtKeyPaddingMask: target.eq(0),
      memoryKeyPaddingMask: padding,
    });
    return this.output.forward(decoded);
  }
}

export function program(dtype: DType) {
  const model = new Translator().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 1, betas: [0.9, 0.98], eps: 1e-9 });
  const rate = (step: number) => 0.1 * WIDTH ** -0.5 * Math.min((step + 1) ** -0.5, (step + 1) * 20 ** -1.5);
  const schedule = new LambdaLR(optimizer, { lrLambda: rate });

  function step(source: Tensor, target: Tensor) {
    const logits = model.forward(source, target.slice(0, -1, 1));
    const loss = crossEntropy(logits, target.slice(1, undefined, 1), { ignoreIndex: 0 });
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step, endEpoch: () => schedule.step() };
}
