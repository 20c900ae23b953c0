import type { DType, Tensor } from "@opt/core";
import {
  cosineEmbeddingLoss,
  InstanceNorm1d,
  Linear,
  Module,
  PReLU,
  pairwiseDistance,
  tripletMarginLoss,
} from "@opt/nn";
import { RAdam } from "@opt/optim";

class Encoder extends Module {
  hidden = new Linear(10, 16);
  bend = new PReLU();
  norm = new InstanceNorm1d(4);
  output = new Linear(16, 4);

  forward(x: Tensor): Tensor {
    const groups = this.bend.forward(this.hidden.forward(x)).reshape([-1, 4, 4]);
    return this.output.forward(this.norm.forward(groups).reshape([-1, 16]));
  }
}

export function program(dtype: DType) {
  const model = new Encoder().to(dtype);
  const optimizer = new RAdam(model.namedParameters(), { lr: 5e-3 });

  function step(anchors: Tensor, positives: Tensor, negatives: Tensor, same: Tensor) {
    const [a, p, n] = [model.forward(anchors), model.forward(positives), model.forward(negatives)];
    const triplets = tripletMarginLoss(a, p, n, { margin: 1, swap: true });
    const apart = pairwiseDistance(a, n).neg().add(2).clamp(0).square();
    const contrastive = same.mul(pairwiseDistance(a, p).square()).add(apart).mean();
    const loss = triplets.add(contrastive).add(cosineEmbeddingLoss(a, n, same.mul(2).sub(1), { margin: 0.2 }));
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
