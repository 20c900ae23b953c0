import { type DType, grad, lerp, type Tensor } from "@opt/core";
import { LeakyReLU, Linear, ReLU, Sequential } from "@opt/nn";
import { Adam } from "@opt/optim";

export function program(dtype: DType) {
  const generator = new Sequential(new Linear(3, 16), new ReLU(), new Linear(16, 2)).to(dtype);
  const critic = new Sequential(new Linear(2, 16), new LeakyReLU(0.2), new Linear(16, 1)).to(dtype);
  const generatorOptimizer = new Adam(generator.namedParameters(), { lr: 1e-3, betas: [0, 0.9] });
  const criticOptimizer = new Adam(critic.namedParameters(), { lr: 1e-3, betas: [0, 0.9] });

  function gradientPenalty(real: Tensor, fake: Tensor, alpha: Tensor) {
    const between = lerp(real, fake, alpha).detach();
    between.requiresGrad = true;
    const [gradient] = grad(critic.forward(between).sum(), [between], { createGraph: true });
    return gradient.norm(2, 1).sub(1).square().mean();
  }

  function step(real: Tensor, noise: Tensor, alpha: Tensor) {
    const fake = generator.forward(noise);
    const penalty = gradientPenalty(real, fake, alpha);
    const distance = critic.forward(fake.detach()).mean().sub(critic.forward(real).mean());
    const loss = distance.add(penalty.mul(10));
    criticOptimizer.zeroGrad();
    loss.backward();
    criticOptimizer.step();
    generatorOptimizer.zeroGrad();
    critic.forward(fake).mean().neg().backward();
    generatorOptimizer.step();
    return loss;
  }
  return { models: { generator, critic }, step };
}
