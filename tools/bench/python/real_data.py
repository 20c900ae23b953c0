"""First weights, batches and memory of the bench `real`: torch and JAX begin with the same."""
import re

import numpy as np

BATCHES = 4


def values(size, factor):
    """As nn/values.ts."""
    i = np.arange(size, dtype=np.int64)
    x = i % 9973
    return (((x * x * 31 + i * factor) % 10007) / 10007 - 0.5).astype(np.float32)


def integers(size, factor, below):
    drawn = (values(size, factor).astype(np.float64) + 0.5) * below
    return np.minimum(below - 1, np.floor(drawn)).astype(np.int64)


def first_weights(index, name, shape):
    """Of the parameter that is number `index` of its model, as nn/first-weights.ts."""
    drawn = values(int(np.prod(shape)), 7919 + 2 * index).reshape(shape).astype(np.float64)
    if len(shape) > 1:
        return (2 * drawn / np.prod(shape[1:]) ** 0.5).astype(np.float32)
    if name.endswith("weight"):
        return np.ones(shape, np.float32)
    return (drawn / 8).astype(np.float32)


def make_batch(model, index):
    a, b, c = (factor + 2 * index for factor in (104729, 1299, 31))
    if model == "resnet":
        return values(64 * 3 * 32 * 32, a).reshape(64, 3, 32, 32), integers(64, b, 10)
    if model == "gpt":
        return integers(8 * 256, a, 65).reshape(8, 256), integers(8 * 256, b, 65).reshape(8, 256)
    if model == "lstm":
        return integers(700, a, 10_000).reshape(35, 20), integers(700, b, 10_000).reshape(35, 20)
    if model == "unet":
        images, noise = (values(16 * 3 * 32 * 32, factor).reshape(16, 3, 32, 32) for factor in (a, b))
        return images, integers(16, c, 1000).astype(np.float32), noise
    if model == "dlrm":
        places = integers(26 * 2048, b, 20_000).reshape(26, 2048)
        return values(2048 * 13, a).reshape(2048, 13), places, integers(2048, c, 2).astype(np.float32)
    return values(4096, a).reshape(-1, 1), values(4096, b).reshape(-1, 1), values(256, c).reshape(-1, 1)


def memory(key):
    with open("/proc/self/status") as status:
        return 1024 * int(re.search(rf"^{key}:\s*(\d+) kB", status.read(), re.M)[1])


def resident_bytes():
    return memory("VmRSS")


class Peak:
    """The most that was held since its making, beside what was held `before`."""

    def __init__(self, before):
        self.before = before
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")

    def bytes(self):
        return memory("VmHWM") - self.before
