"""First weights and batches of the models that train, in plain arrays: torch and JAX begin with the same."""
import math
from array import array

BATCHES = 8
TOKENS, LENGTH, WIDTH, HEADS, BLOCKS = 64, 48, 64, 4, 2


def values(size, factor):
    """Values in (-0.5, 0.5] without an order."""
    return array("f", (((i % 9973) ** 2 * 31 + i * factor) % 10007 / 10007 - 0.5 for i in range(size)))


def integers(size, factor, below):
    return array("q", (min(below - 1, math.floor((x + 0.5) * below)) for x in values(size, factor)))


def make_batch(model, batch, index):
    """Inputs, their shape and labels."""
    factors = 104729 + 2 * index, 1299 + 2 * index
    if model != "gpt":
        shape = (batch, 28 * 28) if model == "mlp" else (batch, 1, 28, 28)
        return values(batch * 28 * 28, factors[0]), shape, integers(batch, factors[1], 10)
    tokens, labels = (integers(batch * LENGTH, factor, TOKENS) for factor in factors)
    return tokens, (batch, LENGTH), labels


def first_weights(index, name, shape):
    """Of the parameter that is number `index` of its model."""
    drawn = values(math.prod(shape), 7919 + 2 * index)
    if len(shape) > 1:
        inputs = math.prod(shape[1:])
        return array("f", (2 * x / inputs**0.5 for x in drawn))
    return array("f", (1 if name.endswith("weight") else x / 8 for x in drawn))


def session(train, batches):
    """What `serve` runs: each step trains on the next batch and reads the loss."""
    losses = []

    def run(steps):
        for _ in range(steps):
            losses.append(train(*batches[len(losses) % BATCHES]).item())

    return run, lambda count: losses[:count]
