import { type DType, gatherAlong, stack, type Tensor } from "@opt/core";
import { Linear, Module, smoothL1Loss } from "@opt/nn";
import { Adam } from "@opt/optim";

class Policy extends Module {
  affine = new Linear(4, 12);
  actionHead = new Linear(12, 2);
  valueHead = new Linear(12, 1);

  forward(states: Tensor): [logProbabilities: Tensor, values: Tensor] {
    const hidden = this.affine.forward(states).relu();
    return [this.actionHead.forward(hidden).logSoftmax(-1), this.valueHead.forward(hidden).squeeze(-1)];
  }
}

/** The sum of later rewards, each discounted. */
function returnsOf(rewards: Tensor): Tensor {
  const returns: Tensor[] = [];
  let next: Tensor | null = null;
  for (let i = rewards.size - 1; i >= 0; i--) {
    const reward = rewards.select(0, i);
    next = next === null ? reward : next.mul(0.99).add(reward);
    returns.unshift(next);
  }
  return stack(returns);
}

export function program(dtype: DType) {
  const model = new Policy().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 2e-3 });

  function step(states: Tensor, actions: Tensor, rewards: Tensor) {
    const sums = returnsOf(rewards);
    const returns = sums.sub(sums.mean()).div(sums.std().add(1e-6));
    const [logProbabilities, values] = model.forward(states);
    const chosen = gatherAlong(logProbabilities, actions.unsqueeze(1), 1).squeeze(1);
    const advantages = returns.sub(values.detach());
    const entropy = logProbabilities.exp().mul(logProbabilities).sum(-1).neg();
    const ofPolicy = chosen.mul(advantages).neg().sum().sub(entropy.sum().mul(0.01));
    const loss = ofPolicy.add(smoothL1Loss(values, returns, { reduction: "sum" }));
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
