"""Training steps of models of the size that users train, in JAX."""
import os
from functools import partial

from session import THREADS, serve

os.environ["NPROC"] = str(THREADS)  # XLA sizes its thread pools by it when jax is imported

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from jax import lax, nn  # noqa: E402
from real_data import BATCHES, Peak, first_weights, make_batch, resident_bytes  # noqa: E402


def linear(p, name, x):
    return x @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0)


def convolution(p, name, x, stride=1):
    """Of images with the channels last: XLA's fast layout on the CPU."""
    weight = p[f"{name}.weight"]
    pad = weight.shape[2] // 2
    axes = ("NHWC", "OIHW", "NHWC")
    return lax.conv_general_dilated(x, weight, (stride, stride), [(pad, pad)] * 2, dimension_numbers=axes) + p.get(
        f"{name}.bias", 0
    )


def batch_norm(p, name, x):
    return nn.standardize(x, (0, 1, 2), epsilon=1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def resnet(p, images, labels):
    x = nn.relu(batch_norm(p, "bn", convolution(p, "conv", images.transpose(0, 2, 3, 1))))
    for i in range(8):
        name, stride = f"blocks.{i}", 2 if i in (2, 4, 6) else 1
        hidden = nn.relu(batch_norm(p, f"{name}.bn1", convolution(p, f"{name}.conv1", x, stride)))
        hidden = batch_norm(p, f"{name}.bn2", convolution(p, f"{name}.conv2", hidden))
        if f"{name}.down.0.weight" in p:
            x = batch_norm(p, f"{name}.down.1", convolution(p, f"{name}.down.0", x, stride))
        x = nn.relu(hidden + x)
    return cross_entropy(linear(p, "fc", x.mean((1, 2))), labels)


def layer_norm(p, name, x):
    return nn.standardize(x, epsilon=1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def attention(q, k, v, mask=None):
    scores = jnp.einsum("...qd,...kd->...qk", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return jnp.einsum("...qk,...kd->...qd", nn.softmax(scores), v)


def gpt(p, tokens, following):
    x = p["tok.weight"][tokens] + p["pos.weight"]
    batch, length, width = x.shape
    for i in range(6):
        name = f"blocks.{i}"
        qkv = linear(p, f"{name}.qkv", layer_norm(p, f"{name}.ln1", x))
        heads = qkv.reshape(batch, length, 3, 6, -1).transpose(2, 0, 3, 1, 4)
        seen = attention(*heads, np.tri(length, dtype=bool)).transpose(0, 2, 1, 3).reshape(batch, length, width)
        x = x + linear(p, f"{name}.proj", seen)
        hidden = linear(p, f"{name}.fc", layer_norm(p, f"{name}.ln2", x))
        x = x + linear(p, f"{name}.out", nn.gelu(hidden, approximate=False))
    return cross_entropy(linear(p, "head", layer_norm(p, "ln", x)), following)


def lstm(p, words, following):
    x = p["embedding.weight"][words]
    for layer in range(2):
        weight = p[f"lstm.weight_hh_l{layer}"]
        gates = x @ p[f"lstm.weight_ih_l{layer}"].T + p[f"lstm.bias_ih_l{layer}"] + p[f"lstm.bias_hh_l{layer}"]

        def cell(state, given, weight=weight):
            h, c = state
            i, f, g, o = jnp.split(given + h @ weight.T, 4, axis=-1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros((x.shape[1], weight.shape[1]))
        x = lax.scan(cell, (start, start), gates)[1]
    return cross_entropy(linear(p, "head", x), following)


def group_norm(p, name, x):
    batch, height, width, channels = x.shape
    groups = x.reshape(batch, height, width, 32, channels // 32)
    normed = nn.standardize(groups, (1, 2, 4), epsilon=1e-5).reshape(x.shape)
    return normed * p[f"{name}.weight"] + p[f"{name}.bias"]


def unet(p, images, steps, noise):
    def block(name, i, x, time):
        at = f"{name}.residuals.{i}"
        hidden = convolution(p, f"{at}.conv1", nn.silu(group_norm(p, f"{at}.norm1", x)))
        hidden = hidden + linear(p, f"{at}.time", time)[:, None, None]
        hidden = convolution(p, f"{at}.conv2", nn.silu(group_norm(p, f"{at}.norm2", hidden)))
        x = hidden + (convolution(p, f"{at}.skip", x) if f"{at}.skip.weight" in p else x)
        at = f"{name}.attentions.{i}"
        if f"{at}.qkv.weight" not in p:
            return x
        qkv = convolution(p, f"{at}.qkv", group_norm(p, f"{at}.norm", x))
        q, k, v = jnp.split(qkv.reshape(len(x), -1, qkv.shape[-1]), 3, axis=-1)
        return x + convolution(p, f"{at}.out", attention(q, k, v).reshape(x.shape))

    angles = steps[:, None] * 10_000 ** (-jnp.arange(32) / 32)
    time = linear(p, "time1", jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], 1))
    time = nn.silu(linear(p, "time2", nn.silu(time)))
    kept = [convolution(p, "first", images.transpose(0, 2, 3, 1))]
    for i in range(4):
        for each in range(2):
            kept.append(block(f"down.{i}", each, kept[-1], time))
        if i < 3:
            kept.append(convolution(p, f"shrink.{i}", kept[-1], 2))
    x = kept[-1]
    for each in range(2):
        x = block("middle", each, x, time)
    for i in range(4):
        for each in range(3):
            x = block(f"up.{i}", each, jnp.concatenate([x, kept.pop()], -1), time)
        if i < 3:
            x = convolution(p, f"grow.{i}", x.repeat(2, 1).repeat(2, 2))
    x = convolution(p, "last", nn.silu(group_norm(p, "norm", x)))
    return jnp.square(x - noise.transpose(0, 2, 3, 1)).mean()


def dlrm(p, dense, places, clicks):
    hidden = dense
    for i in range(3):
        hidden = nn.relu(linear(p, f"bottom.{i}", hidden))
    vectors = jnp.stack([hidden, *(p[f"tables.{i}.weight"][places[i]] for i in range(26))], 1)
    products = jnp.einsum("bid,bjd->bij", vectors, vectors).reshape(len(dense), -1)
    pairs = np.array([i for i in range(27 * 27) if i % 27 < i // 27])
    result = jnp.concatenate([hidden, products[:, pairs]], 1)
    for i in range(3):
        result = linear(p, f"top.{i}", nn.relu(result) if i > 0 else result)
    return optax.sigmoid_binary_cross_entropy(result[:, 0], clicks).mean()


def pinn(p, xs, ts, starts):
    def at(x, t):
        hidden = jnp.concatenate([x, t], -1)
        for i in range(5):
            hidden = linear(p, f"layers.{i}", hidden)
            hidden = jnp.tanh(hidden) if i < 4 else hidden
        return hidden

    def ux(x, t):
        return jax.jvp(lambda x: at(x, t), (x,), (jnp.ones_like(x),))[1]

    u, ut = jax.jvp(lambda t: at(xs, t), (ts,), (jnp.ones_like(ts),))
    slope, uxx = jax.jvp(lambda x: ux(x, ts), (xs,), (jnp.ones_like(xs),))
    residual = ut + u * slope - 0.01 / np.pi * uxx
    start = at(starts, starts * 0) + jnp.sin(np.pi * starts)
    return jnp.square(residual).mean() + jnp.square(start).mean()


MODELS = {"resnet": resnet, "gpt": gpt, "lstm": lstm, "unet": unet, "dlrm": dlrm, "pinn": pinn}


def open_work(request):
    name = request["model"]
    jnp.zeros(1).block_until_ready()
    before = resident_bytes()
    first = enumerate(request["parameters"])
    params = jax.device_put({each: first_weights(index, each, tuple(shape)) for index, (each, shape) in first})
    batches = [[jnp.asarray(each) for each in make_batch(name, index)] for index in range(BATCHES)]
    optimizer = optax.sgd(0.1) if name == "dlrm" else optax.adamw(1e-4 if name == "resnet" else 1e-3, weight_decay=0.01)
    state = optimizer.init(params)
    losses = []
    peak = Peak(before)

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, batch):
        loss, gradients = jax.value_and_grad(MODELS[name])(params, *batch)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    def run(steps):
        nonlocal params, state
        for _ in range(steps):
            params, state, loss = step(params, state, batches[len(losses) % BATCHES])
            losses.append(loss.item())

    return run, lambda count: losses[:count], peak.bytes


serve(open_work)
