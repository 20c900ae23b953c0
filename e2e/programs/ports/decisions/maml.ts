import { type DType, grad, type Tensor } from "@opt/core";
import { functionalCall, Linear, Module, mseLoss } from "@opt/nn";
import { Adam } from "@opt/optim";

class Net extends Module {
  hidden = new Linear(1, 12);
  output = new Linear(12, 1);

  forward(x: Tensor): Tensor {
    return this.output.forward(this.hidden.forward(x).tanh());
  }
}

export function program(dtype: DType) {
  const model = new Net().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 1e-2 });

  function adapted(x: Tensor, y: Tensor) {
    let weights = Object.fromEntries(model.namedParameters());
    for (let i = 0; i < 2; i++) {
      const loss = mseLoss(functionalCall(model, weights, x), y);
      const gradients = grad(loss, Object.values(weights), { createGraph: true });
      const next = Object.entries(weights).map(([name, weight], k) => [name, weight.sub(gradients[k]!.mul(0.1))]);
      weights = Object.fromEntries(next);
    }
    return weights;
  }

  function step(supportX: Tensor, supportY: Tensor, queryX: Tensor, queryY: Tensor) {
    const losses = [0, 1, 2].map((task) => {
      const weights = adapted(supportX.select(0, task), supportY.select(0, task));
      return mseLoss(functionalCall(model, weights, queryX.select(0, task)), queryY.select(0, task));
    });
    const loss = losses.reduce((a, b) => a.add(b)).div(3);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
