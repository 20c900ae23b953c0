"""What the works in JAX share: threads, linear layers and a jitted training step."""
import os
from functools import partial

from session import THREADS

os.environ["NPROC"] = str(THREADS)  # XLA sizes its thread pools by it when jax is imported

import jax  # noqa: E402
import optax  # noqa: E402


def linear(params, name, x):
    return x @ params[f"{name}.weight"].T + params.get(f"{name}.bias", 0)


def make_train(forward, params, lr):
    """A function that trains on a batch (inputs and labels) and returns the loss."""
    optimizer = optax.adamw(lr, weight_decay=0.01)  # torch's default; optax's is another
    params = jax.device_put(params)
    state = optimizer.init(params)

    def loss_of(params, inputs, labels):
        return optax.softmax_cross_entropy_with_integer_labels(forward(params, inputs), labels).mean()

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, inputs, labels):
        loss, gradients = jax.value_and_grad(loss_of)(params, inputs, labels)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    def train(inputs, labels):
        nonlocal params, state
        params, state, loss = step(params, state, inputs, labels)
        return loss

    return train
