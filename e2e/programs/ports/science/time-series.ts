import { type compile, concat, type DType, type Tensor, tidy, zeros } from "@opt/core";
import { Linear, LSTMCell, Module, mseLoss } from "@opt/nn";
import { LBFGS } from "@opt/optim";

class Sequence extends Module {
  lstm1 = new LSTMCell(1, 6);
  lstm2 = new LSTMCell(6, 6);
  linear = new Linear(6, 1);

  forward(input: Tensor): Tensor {
    const state = () => zeros([input.shape[0]!, 6], { dtype: input.dtype });
    let first: [Tensor, Tensor] = [state(), state()];
    let second: [Tensor, Tensor] = [state(), state()];
    const outputs: Tensor[] = [];
    for (let time = 0; time < input.shape[1]!; time++) {
      first = this.lstm1.forward(input.slice(time, time + 1, 1), first);
      second = this.lstm2.forward(first[0], second);
      outputs.push(this.linear.forward(second[0]));
    }
    return concat(outputs, 1);
  }
}

export function program(dtype: DType, compiled: typeof compile) {
  const model = new Sequence().to(dtype);
  const optimizer = new LBFGS(model.namedParameters(), { lr: 0.3, maxIter: 2 });
  const evaluate = compiled((input: Tensor, target: Tensor) => {
    const loss = mseLoss(model.forward(input), target);
    loss.backward();
    return loss;
  });
  const step = (input: Tensor, target: Tensor) =>
    optimizer.step(() =>
      tidy(() => {
        optimizer.zeroGrad();
        return evaluate(input, target);
      }),
    );
  return { models: { model }, step, isAsync: true };
}
