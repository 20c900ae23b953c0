"""Training of 784-hidden-10 on the MNIST images in JAX, in memory as float32."""
import jax
import numpy as np
from jax_session import linear, make_train
from mnist_data import PIXELS, epochs, first_weights, read
from session import serve


def forward(params, x):
    return linear(params, "2", jax.nn.relu(linear(params, "0", x)))


def open_work(request):
    images, labels = (np.frombuffer(data, np.uint8) for data in read(request["folder"]))
    images, labels = images.reshape(-1, PIXELS).astype(np.float32) / 255, labels.astype(np.int32)
    params = {name: np.array(data).reshape(shape) for name, shape, data in first_weights(request["hidden"])}
    train = make_train(forward, params, request["lr"])
    rows = epochs(np.arange(len(labels)), request["batch"])
    losses = []

    def run(steps):
        unread = []
        for _ in range(steps):
            chosen = next(rows)
            unread.append(train(images[chosen], labels[chosen]))
        losses.extend(np.array(jax.device_get(unread)).tolist())

    return run, lambda count: losses[:count]


serve(open_work)
