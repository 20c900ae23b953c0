"""Float64 answers for Lookahead and scheduleFree (optax) and for SAM (NumPy), printed as JSON.

python packages/core/testing/wrappers/judge.py > packages/core/testing/goldens/wrappers.json
"""

import json

import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib

START = np.array([0.5, -1.25, 2.0, 0.0625])
SCALE = np.array([1.0, 0.5, 0.25, 3.0])
SHIFT = np.array([0.1, -0.2, 0.3, -0.4])
STEPS = 23
LR = 0.1


def gradient(w):
    """Of sum(scale * w^4 / 4 + shift * w)."""
    return SCALE * w**3 + SHIFT


def trace_of(optimizer, start, gradient_at=lambda params: params, seen=lambda params, state: params):
    params, trace = start, []
    state = optimizer.init(params)
    for _ in range(STEPS):
        updates, state = optimizer.update(jnp.asarray(gradient(np.asarray(gradient_at(params)))), state, params)
        params = optax.apply_updates(params, updates)
        trace.append(np.asarray(seen(params, state)).tolist())
    return trace


def lookahead(k, alpha):
    return trace_of(
        optax.lookahead(optax.sgd(LR), k, alpha),
        optax.LookaheadParams.init_synced(jnp.asarray(START)),
        lambda params: params.fast,
        lambda params, _: params.fast,
    )


def sam(rho, adaptive):
    w, trace = START.copy(), []
    for _ in range(STEPS):
        g = gradient(w)
        scaled = np.abs(w) * g if adaptive else g
        direction = w**2 * g if adaptive else g
        w = w - LR * gradient(w + rho * direction / (np.sqrt(np.sum(scaled**2)) + 1e-12))
        trace.append(w.tolist())
    return trace


def schedule_free(momentum, power):
    optimizer = optax.contrib.schedule_free(optax.sgd(LR), LR, momentum, power)
    start = jnp.asarray(START)
    averages = lambda params, state: optax.contrib.schedule_free_eval_params(state, params)
    return {"y": trace_of(optimizer, start), "x": trace_of(optimizer, start, seen=averages)}


print(
    json.dumps(
        {
            "lookahead": [{"options": {"k": k, "alpha": a}, "trace": lookahead(k, a)} for k, a in [(5, 0.5), (2, 0.8), (1, 0.3)]],
            "sam": [{"options": {"rho": r, "adaptive": a}, "trace": sam(r, a)} for r, a in [(0.05, False), (0.5, True)]],
            "scheduleFree": [
                {"options": {"momentum": m, "weightLrPower": p}, **schedule_free(m, p)} for m, p in [(0.9, 2), (0.6, 0)]
            ],
        }
    )
)
