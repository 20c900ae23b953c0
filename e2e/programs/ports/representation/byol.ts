import { type DType, lerp, noGrad, type Tensor } from "@opt/core";
import { BatchNorm1d, cosineSimilarity, Linear, ReLU, Sequential } from "@opt/nn";
import { SGD } from "@opt/optim";

const mlp = (from: number, to: number) =>
  new Sequential(new Linear(from, 12), new BatchNorm1d(12), new ReLU(), new Linear(12, to));

export function program(dtype: DType) {
  const online = mlp(10, 6).to(dtype);
  const predictor = mlp(6, 6).to(dtype);
  const target = mlp(10, 6).to(dtype);
  target.loadStateDict(online.stateDict());
  target.freeze();
  const optimizer = new SGD([...online.parameters(), ...predictor.parameters()], { lr: 0.1, momentum: 0.9 });

  const distance = (prediction: Tensor, projection: Tensor) =>
    cosineSimilarity(prediction, projection, { axis: -1 }).mean().mul(-2).add(2);

  function step(first: Tensor, second: Tensor) {
    const [ofFirst, ofSecond] = noGrad(() => [target.forward(first), target.forward(second)]) as [Tensor, Tensor];
    const one = distance(predictor.forward(online.forward(first)), ofSecond);
    const loss = one.add(distance(predictor.forward(online.forward(second)), ofFirst));
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    noGrad(() => {
      const averages = target.parameters();
      for (const [i, weight] of online.parameters().entries()) averages[i]!.set(lerp(averages[i]!, weight, 0.05));
    });
    return loss;
  }
  return { models: { online, predictor, target }, step };
}
