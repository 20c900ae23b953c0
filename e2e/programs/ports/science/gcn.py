import torch
from torch import nn
from torch.nn import functional as F

NODES = 8


class GCNConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = nn.Linear(inputs, outputs)

    def forward(self, x, source, target):
        edges = torch.ones_like(source, dtype=x.dtype)
        root = (torch.zeros(NODES).index_add(0, target, edges) + 1).rsqrt()
        weights = (root[source] * root[target]).unsqueeze(1)
        features = self.lin(x)
        return (features * root.square().unsqueeze(1)).index_add(0, target, features[source] * weights)


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GCNConv(5, 8)
        self.conv2 = GCNConv(8, 3)

    def forward(self, x, source, target):
        return F.log_softmax(self.conv2(F.relu(self.conv1(x, source, target)), source, target), dim=1)


def program():
    source = torch.tensor([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 0, 0, 4])
    target = torch.tensor([1, 0, 2, 1, 3, 2, 4, 3, 5, 4, 6, 5, 7, 6, 0, 7, 4, 0])
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    train_mask = torch.tensor([True, True, False, True, True, False, True, False])

    def step(x, labels):
        optimizer.zero_grad()
        output = model(x, source, target)
        loss = F.nll_loss(output[train_mask], labels[train_mask])
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step
