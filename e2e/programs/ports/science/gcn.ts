import { type DType, gather, indexAdd, nonzero, onesLike, type Tensor, tensor, zeros } from "@opt/core";
import { Linear, Module, nllLoss } from "@opt/nn";
import { Adam } from "@opt/optim";

const NODES = 8;

class GCNConv extends Module {
  lin: Linear;

  constructor(inputs: number, outputs: number) {
    super();
    this.lin = new Linear(inputs, outputs);
  }

  forward(x: Tensor, from: Tensor, to: Tensor): Tensor {
    const { dtype } = x;
    const edges = onesLike(from).to(dtype);
    const root = indexAdd(zeros([NODES], { dtype }), 0, to, edges)
      .add(1)
      .rsqrt();
    const weights = gather(root, from).mul(gather(root, to)).unsqueeze(1);
    const features = this.lin.forward(x);
    const messages = gather(features, from).mul(weights);
    return indexAdd(features.mul(root.square().unsqueeze(1)), 0, to, messages);
  }
}

class GCN extends Module {
  conv1 = new GCNConv(5, 8);
  conv2 = new GCNConv(8, 3);

  forward(x: Tensor, from: Tensor, to: Tensor): Tensor {
    return this.conv2.forward(this.conv1.forward(x, from, to).relu(), from, to).logSoftmax(1);
  }
}

export async function program(dtype: DType) {
  const from = tensor([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 0, 0, 4], { dtype: "i32" });
  const to = tensor([1, 0, 2, 1, 3, 2, 4, 3, 5, 4, 6, 5, 7, 6, 0, 7, 4, 0], { dtype: "i32" });
  const model = new GCN().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 1e-2, weightDecay: 5e-4 });
  const trainMask = tensor([true, true, false, true, true, false, true, false]);
  const trained = (await nonzero(trainMask)).squeeze(1);

  function step(x: Tensor, labels: Tensor) {
    optimizer.zeroGrad();
    const output = model.forward(x, from, to);
    const loss = nllLoss(gather(output, trained), gather(labels, trained));
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
