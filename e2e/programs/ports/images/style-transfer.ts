import { type compile, type DType, einsum, parameter, rand, type Tensor, tidy } from "@opt/core";
import { AvgPool2d, Conv2d, l1Loss, Module, mseLoss, ReLU, Sequential } from "@opt/nn";
import { LBFGS } from "@opt/optim";

class Images extends Module {
  content = rand([1, 3, 6, 6]);
  style = rand([1, 3, 6, 6]);
  pixels = parameter(this.content.clone());

  forward(): Tensor {
    return this.pixels;
  }
}

const layers = () => [
  new Conv2d(3, 4, 3, { padding: 1 }),
  new ReLU(),
  new AvgPool2d(2),
  new Conv2d(4, 6, 3),
  new ReLU(),
];

/** Which channels are large together. */
function gram(features: Tensor): Tensor {
  const [, channels, height, width] = features.shape as [number, number, number, number];
  return einsum("bchw,bdhw->bcd", features, features).div(channels * height * width);
}

export function program(dtype: DType, compiled: typeof compile) {
  const images = new Images().to(dtype);
  const network = new Sequential(...layers()).to(dtype);
  network.freeze();
  const optimizer = new LBFGS([images.pixels], { maxIter: 2, lineSearch: "strongWolfe" });

  const evaluate = compiled(() => {
    const { content, style, pixels } = images;
    const features = network.forward(pixels);
    const smoothness = l1Loss(pixels.slice(1, 6, 2), pixels.slice(0, 5, 2));
    const styleLoss = mseLoss(gram(features), gram(network.forward(style)));
    const loss = mseLoss(features, network.forward(content)).add(styleLoss.mul(100)).add(smoothness.mul(0.01));
    loss.backward();
    return loss;
  });
  const step = () =>
    optimizer.step(() =>
      tidy(() => {
        optimizer.zeroGrad();
        return evaluate();
      }),
    );
  return { models: { images, network }, step, isAsync: true };
}
