import { concat, type DType, grad, sin, type Tensor } from "@opt/core";
import { Linear, Module } from "@opt/nn";
import { Adam } from "@opt/optim";

class Net extends Module {
  layers = [new Linear(2, 12), new Linear(12, 12), new Linear(12, 1)];

  forward(x: Tensor, t: Tensor): Tensor {
    const [first, second, last] = this.layers as [Linear, Linear, Linear];
    return last.forward(second.forward(first.forward(concat([x, t], 1)).tanh()).tanh());
  }
}

/** Burgers' equation: u_t + u u_x = 0.01 / pi u_xx. */
export function program(dtype: DType) {
  const model = new Net().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 5e-3 });

  function step(places: Tensor, times: Tensor) {
    const [x, t] = [places.clone(), times.clone()];
    x.requiresGrad = true;
    t.requiresGrad = true;
    const u = model.forward(x, t);
    const [ux, ut] = grad(u.sum(), [x, t], { createGraph: true });
    const [uxx] = grad(ux.sum(), [x], { createGraph: true });
    const residual = ut.add(u.mul(ux)).sub(uxx.mul(0.01 / Math.PI));
    const start = model.forward(x, t.mul(0)).add(sin(x.mul(Math.PI)));
    const loss = residual.square().mean().add(start.square().mean());
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
