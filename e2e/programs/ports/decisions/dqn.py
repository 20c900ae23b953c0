import torch
from torch import nn
from torch.nn import functional as F


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(4, 16)
        self.layer2 = nn.Linear(16, 3)

    def forward(self, states):
        return self.layer2(F.relu(self.layer1(states)))


def program():
    policy = DQN()
    target = DQN()
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3, amsgrad=True)

    def step(states, actions, rewards, next_states, done):
        values = policy(states).gather(1, actions).squeeze(1)
        with torch.no_grad():
            best = torch.zeros(len(states))
            best[~done] = target(next_states[~done]).max(1).values
            expected = best * 0.99 + rewards
        loss = F.huber_loss(values, expected)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(policy.parameters(), 0.1)
        optimizer.step()
        with torch.no_grad():
            for slow, weight in zip(target.parameters(), policy.parameters()):
                slow.lerp_(weight, 0.05)
        return loss

    return {"policy": policy, "target": target}, step
