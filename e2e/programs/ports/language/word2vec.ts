import { type DType, logsigmoid, type Tensor } from "@opt/core";
import { constant, Embedding, Module, uniform } from "@opt/nn";
import { SparseAdam } from "@opt/optim";

class SkipGram extends Module {
  center = new Embedding(30, 6, { sparse: true });
  context = new Embedding(30, 6, { sparse: true });

  constructor() {
    super();
    uniform(this.center.weight, -0.5, 0.5);
    constant(this.context.weight, 0.1);
  }

  forward(center: Tensor, context: Tensor, negatives: Tensor): Tensor {
    const word = this.center.forward(center).unsqueeze(-1);
    const good = logsigmoid(this.context.forward(context).unsqueeze(1).matmul(word)).squeeze();
    const bad = logsigmoid(this.context.forward(negatives).matmul(word).neg()).sum([1, 2]);
    return good.add(bad).mean().neg();
  }
}

export function program(dtype: DType) {
  const model = new SkipGram().to(dtype);
  const optimizer = new SparseAdam(model.namedParameters(), { lr: 1e-2 });

  function step(center: Tensor, context: Tensor, negatives: Tensor) {
    const loss = model.forward(center, context, negatives);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  }
  return { models: { model }, step };
}
