"""Training steps of whole models in JAX."""
import os
from functools import partial

from session import THREADS, serve
from training_data import BATCHES, BLOCKS, HEADS, LENGTH, TOKENS, WIDTH, first_weights, make_batch, session

os.environ["NPROC"] = str(THREADS)  # XLA sizes its thread pools by it when jax is imported

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from jax import lax  # noqa: E402


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


def mlp(params, x):
    return linear(params, "2", jax.nn.relu(linear(params, "0", x)))


def cnn(params, x):
    x = x.reshape(-1, 28, 28, 1)  # channels last: XLA's fast layout on the CPU
    for name in ("0", "3"):
        x = lax.conv_general_dilated(
            x, params[f"{name}.weight"], (1, 1), "SAME", dimension_numbers=("NHWC", "OIHW", "NHWC")
        )
        x = jax.nn.relu(x + params[f"{name}.bias"])
        batch, height, width, channels = x.shape
        # Four times as fast as lax.reduce_window here, because of the gradient.
        x = x.reshape(batch, height // 2, 2, width // 2, 2, channels).max((2, 4))
    return linear(params, "7", x.transpose(0, 3, 1, 2).reshape(len(x), -1))


def norm(params, name, x):
    return jax.nn.standardize(x, epsilon=1e-5) * params[f"{name}.weight"] + params[f"{name}.bias"]


def attention(qkv):
    """Causal; faster here than jax.nn.dot_product_attention."""
    q, k, v = jnp.moveaxis(qkv.reshape(*qkv.shape[:2], 3, HEADS, -1), 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    scores = jnp.where(np.tri(LENGTH, dtype=bool), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(*qkv.shape[:2], -1)


def gpt(params, tokens):
    x = params["tok.weight"][tokens] + params["pos.weight"]
    for i in range(BLOCKS):
        name = f"blocks.{i}"
        x = x + linear(params, f"{name}.proj", attention(linear(params, f"{name}.qkv", norm(params, f"{name}.ln1", x))))
        hidden = linear(params, f"{name}.fc", norm(params, f"{name}.ln2", x))
        x = x + linear(params, f"{name}.out", jax.nn.gelu(hidden, approximate=False))
    return linear(params, "head", norm(params, "ln", x)).reshape(-1, TOKENS)


BLOCK = {
    **{"ln1": (WIDTH,), "qkv": (3 * WIDTH, WIDTH), "proj": (WIDTH, WIDTH)},
    **{"ln2": (WIDTH,), "fc": (4 * WIDTH, WIDTH), "out": (WIDTH, 4 * WIDTH)},
}


def layer(name, *shape):
    return [(f"{name}.weight", shape), (f"{name}.bias", shape[:1])]


# Names and shapes of parameters in torch's order: their first weights depend on it.
MLP = [*layer("0", 256, 28 * 28), *layer("2", 10, 256)]
CNN = [*layer("0", 16, 1, 3, 3), *layer("3", 32, 16, 3, 3), *layer("7", 10, 32 * 7 * 7)]
GPT = [
    *[("tok.weight", (TOKENS, WIDTH)), ("pos.weight", (LENGTH, WIDTH))],
    *(one for i in range(BLOCKS) for part, shape in BLOCK.items() for one in layer(f"blocks.{i}.{part}", *shape)),
    *[*layer("ln", WIDTH), ("head.weight", (TOKENS, WIDTH))],
]


def open_work(request):
    forward, parameters = {"mlp": (mlp, MLP), "cnn": (cnn, CNN), "gpt": (gpt, GPT)}[request["model"]]
    params = {}
    for index, (name, shape) in enumerate(parameters):
        params[name] = np.array(first_weights(index, name, shape)).reshape(shape)
    batches = []
    for index in range(BATCHES):
        inputs, shape, labels = make_batch(request["model"], request["batch"], index)
        batches.append((jnp.asarray(np.array(inputs).reshape(shape)), jnp.asarray(np.array(labels))))
    return session(make_train(forward, params, request["lr"]), batches)


serve(open_work)
