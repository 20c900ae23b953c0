import { type DType, noGrad, type Tensor } from "@opt/core";
import { crossEntropy, klDiv, Linear, ReLU, Sequential } from "@opt/nn";
import { Adam } from "@opt/optim";

const TEMPERATURE = 4;

export function program(dtype: DType) {
  const teacher = new Sequential(new Linear(12, 32), new ReLU(), new Linear(32, 5)).to(dtype).eval();
  const student = new Sequential(new Linear(12, 8), new ReLU(), new Linear(8, 5)).to(dtype);
  const optimizer = new Adam(student.namedParameters(), { lr: 1e-2 });

  function step(x: Tensor, labels: Tensor) {
    const soft = noGrad(() => teacher.forward(x).div(TEMPERATURE).softmax(-1));
    const logits = student.forward(x);
    const likeTeacher = klDiv(logits.div(TEMPERATURE).logSoftmax(-1), soft, { reduction: "batchMean" });
    const loss = likeTeacher.mul(0.7 * TEMPERATURE ** 2).add(crossEntropy(logits, labels).mul(0.3));
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { teacher, student }, step };
}
