import { type DType, full, type Tensor } from "@opt/core";
import {
  BatchNorm2d,
  binaryCrossEntropy,
  Conv2d,
  ConvTranspose2d,
  Flatten,
  LeakyReLU,
  normal,
  ReLU,
  Sequential,
  Sigmoid,
  Tanh,
  Unflatten,
} from "@opt/nn";
import { Adam } from "@opt/optim";

export function program(dtype: DType) {
  const generator = new Sequential(
    new Unflatten(1, [6, 1, 1]),
    new ConvTranspose2d(6, 8, 4, { bias: false }),
    new BatchNorm2d(8),
    new ReLU(),
    new ConvTranspose2d(8, 1, 4, { stride: 2, padding: 1, bias: false }),
    new Tanh(),
  ).to(dtype);
  const discriminator = new Sequential(
    new Conv2d(1, 8, 4, { stride: 2, padding: 1, bias: false }),
    new BatchNorm2d(8),
    new LeakyReLU(0.2),
    new Conv2d(8, 1, 4, { bias: false }),
    new Sigmoid(),
    new Flatten(),
  ).to(dtype);
  for (const model of [generator, discriminator])
    model.apply((layer) => {
      if (layer instanceof Conv2d || layer instanceof ConvTranspose2d) normal(layer.weight, 0, 0.1);
    });
  const generatorOptimizer = new Adam(generator.namedParameters(), { lr: 2e-3, betas: [0.5, 0.999] });
  const discriminatorOptimizer = new Adam(discriminator.namedParameters(), { lr: 2e-3, betas: [0.5, 0.999] });

  function step(real: Tensor, noise: Tensor) {
    const ones = full([real.shape[0]!, 1], 1, { dtype });
    discriminatorOptimizer.zeroGrad();
    const fake = generator.forward(noise);
    const ofReal = binaryCrossEntropy(discriminator.forward(real), ones.mul(0.9));
    const ofFake = binaryCrossEntropy(discriminator.forward(fake.detach()), ones.mul(0));
    ofReal.backward();
    ofFake.backward();
    discriminatorOptimizer.step();
    generatorOptimizer.zeroGrad();
    const ofGenerator = binaryCrossEntropy(discriminator.forward(fake), ones);
    ofGenerator.backward();
    generatorOptimizer.step();
    return ofReal.add(ofFake).add(ofGenerator);
  }
  return { models: { generator, discriminator }, step };
}
