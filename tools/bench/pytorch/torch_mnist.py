"""Training of 784-hidden-10 on the MNIST images, in memory as float32."""
import torch
from torch_session import make_optimizer, serve

PIXELS = 28 * 28


def idx(path, header):
    with open(path, "rb") as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=header)


def first_weights(shape, inputs):
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    values = (2 * (i * 7919 % 10007).double() / 10007 - 1) / torch.tensor(inputs, dtype=torch.float64).sqrt()
    return values.float().reshape(shape)


def open_work(request):
    batch, hidden = request["batch"], request["hidden"]
    images = idx(f"{request['folder']}/train-images-idx3-ubyte", 16).reshape(-1, PIXELS).float() / 255
    labels = idx(f"{request['folder']}/train-labels-idx1-ubyte", 8).long()
    model = torch.nn.Sequential(torch.nn.Linear(PIXELS, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10))
    with torch.no_grad():
        for parameter, inputs in zip(model.parameters(), [PIXELS, PIXELS, hidden, hidden]):
            parameter.copy_(first_weights(parameter.shape, inputs))
    optimizer = make_optimizer(request["optimizer"], request["variant"], model.parameters(), lr=request["lr"])
    loss_function = torch.nn.CrossEntropyLoss()
    per_epoch = len(labels) // batch
    done, order, losses = 0, None, []

    def run(steps):
        nonlocal done, order
        unread = []
        for _ in range(steps):
            epoch, i = divmod(done, per_epoch)
            if i == 0:
                order = (torch.arange(len(labels)) * 7919 + epoch) % len(labels)
            rows = order[i * batch : (i + 1) * batch]
            optimizer.zero_grad()
            loss = loss_function(model(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            unread.append(loss.detach())
            done += 1
        losses.extend(torch.stack(unread).tolist())

    return run, lambda count: losses[:count]


serve(open_work)
