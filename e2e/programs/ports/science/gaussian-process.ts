import { cholesky, choleskySolve, type DType, eye, logdet, parameter, type Tensor } from "@opt/core";
import { Module } from "@opt/nn";
import { Adam } from "@opt/optim";

class GaussianProcess extends Module {
  logLength = parameter(-0.5);
  logScale = parameter(0.2);
  logNoise = parameter(-2);

  /** The negative log marginal likelihood of y at places x. */
  forward(x: Tensor, y: Tensor): Tensor {
    const { dtype } = x;
    const n = x.shape[0]!;
    const distances = x.unsqueeze(1).sub(x.unsqueeze(0)).div(this.logLength.exp()).square().sum(-1);
    const noise = eye(n, { dtype }).mul(this.logNoise.exp().add(1e-6));
    const covariance = distances.mul(-0.5).exp().mul(this.logScale.exp()).add(noise);
    const factor = cholesky(covariance);
    const fit = y.matmul(choleskySolve(y.unsqueeze(1), factor)).squeeze();
    return fit
      .add(logdet(factor).mul(2))
      .add(n * Math.log(2 * Math.PI))
      .mul(0.5);
  }
}

export function program(dtype: DType) {
  const model = new GaussianProcess().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 0.05 });

  function step(x: Tensor, y: Tensor) {
    optimizer.zeroGrad();
    const loss = model.forward(x, y);
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
