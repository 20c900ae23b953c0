import torch
from torch import nn
from torch.nn import functional as F


def mlp(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, outputs))


def program():
    online = mlp(10, 6)
    predictor = mlp(6, 6)
    target = mlp(10, 6)
    target.load_state_dict(online.state_dict())
    target.requires_grad_(False)
    optimizer = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.1, momentum=0.9)

    def distance(prediction, projection):
        return 2 - 2 * F.cosine_similarity(prediction, projection, dim=-1).mean()

    def step(first, second):
        with torch.no_grad():
            of_first, of_second = target(first), target(second)
        loss = distance(predictor(online(first)), of_second) + distance(predictor(online(second)), of_first)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for average, weight in zip(target.parameters(), online.parameters()):
                average.lerp_(weight, 0.05)
        return loss

    return {"online": online, "predictor": predictor, "target": target}, step
