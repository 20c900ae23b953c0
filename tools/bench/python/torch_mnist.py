"""Training of 784-hidden-10 on the MNIST images, in memory as float32."""
import torch
from mnist_data import PIXELS, epochs, first_weights, read
from torch_session import make_optimizer, make_train, serve


def open_work(request):
    batch, hidden = request["batch"], request["hidden"]
    images, labels = (torch.frombuffer(data, dtype=torch.uint8) for data in read(request["folder"]))
    images, labels = images.reshape(-1, PIXELS).float() / 255, labels.long()
    model = torch.nn.Sequential(torch.nn.Linear(PIXELS, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10))
    model.load_state_dict({name: torch.tensor(data).reshape(shape) for name, shape, data in first_weights(hidden)})
    optimizer = make_optimizer(request["optimizer"], request["variant"], model.parameters(), lr=request["lr"])
    train = make_train(model, optimizer, request["variant"], (images[:batch], labels[:batch]))
    rows = epochs(torch.arange(len(labels)), batch)
    losses = []

    def run(steps):
        unread = []
        for _ in range(steps):
            chosen = next(rows)
            unread.append(train(images[chosen], labels[chosen]))
        losses.extend(torch.stack(unread).tolist())

    return run, lambda count: losses[:count]


serve(open_work)
