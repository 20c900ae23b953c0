"""Writes optax-optimizers.json: optax's Lion, AdEMAMix, Lamb and schedule-free AdamW in float32, op by op. `python optax_optimizers.py` beside it.

`start`, `gradients` and `param`, the parameter after the last step, are base64, little-endian float32. So is `average`, the weights to
evaluate where they are others.
"""
import base64, json, pathlib
import jax.numpy as jnp, numpy, optax

STEPS, SIZE, WARM = 25, 37, 12
# Our options, and optax's. Its schedules count from 0, ours from 1.
alpha = lambda count: 8.0 * min((int(count) + 1) / WARM, 1.0)
CASES = [
    ("Lion", {"lr": 0.01}, optax.lion(0.01, weight_decay=0.0)),
    ("Lion", {"lr": 0.02, "betas": [0.95, 0.98], "weightDecay": 0.1}, optax.lion(0.02, 0.95, 0.98, weight_decay=0.1)),
    ("AdEMAMix", {"lr": 0.01}, optax.contrib.ademamix(0.01)),
    (
        "AdEMAMix",
        {"lr": 0.02, "betas": [0.8, 0.99, 0.999], "alpha": 8, "tAlpha": WARM, "weightDecay": 0.1},
        optax.contrib.ademamix(0.02, 0.8, 0.99, 0.999, alpha, weight_decay=0.1),
    ),
    ("ScheduleFreeAdamW", {"lr": 0.01}, optax.contrib.schedule_free_adamw(0.01)),
    (
        "ScheduleFreeAdamW",
        {"lr": 0.02, "betas": [0.75, 0.99], "weightDecay": 0.1},
        optax.contrib.schedule_free_adamw(0.02, b1=0.75, b2=0.99, weight_decay=0.1),
    ),
    ("Lamb", {"lr": 0.01}, optax.lamb(0.01)),
    (
        "Lamb",
        {"lr": 0.05, "betas": [0.8, 0.99], "eps": 0.001, "weightDecay": 0.1},
        optax.lamb(0.05, 0.8, 0.99, 0.001, weight_decay=0.1),
    ),
]
text = lambda array: base64.b64encode(numpy.asarray(array, numpy.float32).tobytes()).decode()


def run(i, name, options, optimizer):
    random = numpy.random.default_rng(i)
    start = random.standard_normal(SIZE)
    gradients = random.standard_normal((STEPS, SIZE)) * 10.0 ** random.integers(-3, 2, (STEPS, 1))
    param = jnp.asarray(start, jnp.float32)
    state = optimizer.init(param)
    for gradient in gradients:
        updates, state = optimizer.update(jnp.asarray(gradient, jnp.float32), state, param)
        param = optax.apply_updates(param, updates)
    end = {"start": text(start), "gradients": [text(gradient) for gradient in gradients], "param": text(param)}
    if name == "ScheduleFreeAdamW":
        end["average"] = text(optax.contrib.schedule_free_eval_params(state, param))
    return {"optimizer": name, "options": options, **end}


cases = ",\n".join(json.dumps(run(i, *case), separators=(",", ":")) for i, case in enumerate(CASES))
pathlib.Path(__file__).with_name("optax-optimizers.json").write_text(f'{{"optax":"{optax.__version__}","cases":[\n{cases}\n]}}\n')
