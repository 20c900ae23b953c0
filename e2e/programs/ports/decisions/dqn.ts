import { clipGradValue, type DType, gatherAlong, lerp, noGrad, type Tensor, where } from "@opt/core";
import { huberLoss, Linear, Module } from "@opt/nn";
import { AdamW } from "@opt/optim";

class DQN extends Module {
  layer1 = new Linear(4, 16);
  layer2 = new Linear(16, 3);

  forward(states: Tensor): Tensor {
    return this.layer2.forward(this.layer1.forward(states).relu());
  }
}

export function program(dtype: DType) {
  const policy = new DQN().to(dtype);
  const target = new DQN().to(dtype);
  target.loadStateDict(policy.stateDict());
  const optimizer = new AdamW(policy.namedParameters(), { lr: 1e-3, amsgrad: true });

  function step(states: Tensor, actions: Tensor, rewards: Tensor, nextStates: Tensor, done: Tensor) {
    const values = gatherAlong(policy.forward(states), actions, 1).squeeze(1);
    const expected = noGrad(() => where(done, 0, target.forward(nextStates).max(1)).mul(0.99).add(rewards));
    const loss = huberLoss(values, expected);
    optimizer.zeroGrad();
    loss.backward();
    clipGradValue(policy.parameters(), 0.1);
    optimizer.step();
    const slow = target.parameters();
    noGrad(() => {
      for (const [i, weight] of policy.parameters().entries()) slow[i]!.set(lerp(slow[i]!, weight, 0.05));
    });
    return loss;
  }
  return { models: { policy, target }, step };
}
