"""First weights, images and their order for 784-hidden-10: torch and JAX begin with the same."""
import math
from array import array
from itertools import count

PIXELS = 28 * 28


def read(folder):
    """Bytes of the images and labels for training, without the headers of their files."""
    for name, header in ("images-idx3", 16), ("labels-idx1", 8):
        with open(f"{folder}/train-{name}-ubyte", "rb") as file:
            yield bytearray(file.read()[header:])


def first_weights(hidden):
    """Name, shape and values of each parameter."""
    shapes = {"0.weight": (hidden, PIXELS), "0.bias": (hidden,), "2.weight": (10, hidden), "2.bias": (10,)}
    for name, shape in shapes.items():
        scale = (PIXELS if name[0] == "0" else hidden) ** 0.5
        size = math.prod(shape)
        yield name, shape, array("f", ((2 * (i * 7919 % 10007) / 10007 - 1) / scale for i in range(size)))


def epochs(indices, batch):
    """The rows of one batch after another, in another order each epoch. `indices`: an array that counts the images."""
    for epoch in count():
        order = (indices * 7919 + epoch) % len(indices)
        for start in range(0, len(indices) - batch + 1, batch):
            yield order[start : start + batch]
