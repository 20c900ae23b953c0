import { concat, type DType, eye, maskedFill, type Tensor, tensor } from "@opt/core";
import { BatchNorm1d, crossEntropy, Linear, normalize, ReLU, Sequential } from "@opt/nn";
import { Adam } from "@opt/optim";

const BATCH = 6;

export function program(dtype: DType) {
  const model = new Sequential(new Linear(10, 16), new BatchNorm1d(16), new ReLU(), new Linear(16, 4)).to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 3e-3, weightDecay: 1e-4 });
  const others = tensor(
    Array.from({ length: 2 * BATCH }, (_, i) => (i + BATCH) % (2 * BATCH)),
    { dtype: "i32" },
  );
  const itself = eye(2 * BATCH).to("bool");

  function step(first: Tensor, second: Tensor) {
    const features = normalize(model.forward(concat([first, second], 0)), { axis: 1 });
    const similarities = maskedFill(features.matmul(features.transpose()), itself, Number.NEGATIVE_INFINITY);
    const loss = crossEntropy(similarities.div(0.5), others);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
