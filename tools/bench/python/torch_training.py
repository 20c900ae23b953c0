"""Training steps of whole models in torch, with what it has for attention and for its optimizers."""
import torch
from torch_gpt import Gpt
from torch_session import make_optimizer, make_train, serve
from training_data import BATCHES, BLOCKS, HEADS, LENGTH, TOKENS, WIDTH, first_weights, make_batch, session

nn = torch.nn


def gpt():
    return Gpt(TOKENS, WIDTH, LENGTH, BLOCKS, HEADS)


def mlp():
    return nn.Sequential(nn.Linear(28 * 28, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 10)),
    )


def open_work(request):
    model = {"mlp": mlp, "cnn": cnn, "gpt": gpt}[request["model"]]()
    with torch.no_grad():
        for index, (name, p) in enumerate(model.named_parameters()):
            p.copy_(torch.tensor(first_weights(index, name, p.shape)).reshape(p.shape))
    batches = []
    for index in range(BATCHES):
        inputs, shape, labels = make_batch(request["model"], request["batch"], index)
        batches.append((torch.tensor(inputs).reshape(shape), torch.tensor(labels)))
    optimizer = make_optimizer(request["optimizer"], request["variant"], model.parameters(), lr=request["lr"])
    return session(make_train(model, optimizer, request["variant"], batches[0]), batches)


serve(open_work)
