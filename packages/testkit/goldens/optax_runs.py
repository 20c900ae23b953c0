"""Writes optax's runs of one package's optimizers, 200 steps in float64 and 25 in float32, op by op, in its testing/optax.json.
`python optax_runs.py packages/optimizers/yogi`: with the options of that package.json, and some at random.

Starts and gradients are those of `runNumbers` in testkit: exact in float32. `params` are base64, little-endian, after the last step.
"""
import base64, functools, json, pathlib, random, sys, types
import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, numpy, optax

SHAPES = [(3,), (4, 3), (1,), (2, 2, 3)]
STEPS = {"float64": 200, "float32": 25}
renamed = lambda options, **names: {names.get(key, key): value for key, value in options.items()}


def betas(options):
    given = options.get("betas", [])
    return {**{key: value for key, value in options.items() if key != "betas"}, **{f"b{i + 1}": beta for i, beta in enumerate(given)}}


def decoupled(make):
    """Weight decay between an optax transformation and its learning rate, where optax has no option for it."""

    def made(lr, weight_decay=0.0, **options):
        return optax.chain(make(**options), optax.add_decayed_weights(weight_decay), optax.scale_by_learning_rate(lr))

    return made


def with_betas(make):
    """For functions that take the rates as a pair."""
    return lambda lr, b1=0.9, b2=0.999, **options: make(lr, betas=(b1, b2), **options)


ESTIMATED_EVERY = 10


def sophia(lr, sign, **options):
    """Sophia whose estimates of the Hessian's diagonal are data: at step 1, 11, 21, ... `numbers` of 1000 steps later."""
    steps = range(1001, 1001 + max(STEPS.values()), ESTIMATED_EVERY)
    table = [numpy.stack([sign * numbers(shape, k, step) for step in steps]) for k, shape in enumerate(SHAPES)]
    estimates = lambda grads, n, params=None: ([jnp.asarray(each, grad.dtype)[n] for each, grad in zip(table, grads)], n + 1)
    given = optax.GradientTransformation(lambda params: jnp.zeros([], int), estimates)
    made = optax.contrib.sophia(lr, update_interval=ESTIMATED_EVERY, hessian_diagonal_fn=given, **options)

    def update(*args):
        with jax.disable_jit():  # else each step compiles both branches again
            return made.update(*args)

    return optax.GradientTransformation(made.init, update)


def galore(lr, projectionType="std", update_proj_gap=200, b1=0.9, b2=0.999, eps=1e-8, **options):
    """None for options that optax lacks: it projects the longer side, and after a refresh the signs of singular vectors are its own."""
    module = optax.contrib._galore
    module.jnp = types.SimpleNamespace(**{**vars(jnp), "float32": jnp.float64})  # else its singular vectors have float32's digits
    if projectionType != "reverseStd" or update_proj_gap < max(STEPS.values()):
        return None
    return module.galore(lr, update_proj_gap=update_proj_gap, base_optimizer=optax.scale_by_adam(b1, b2, eps), **options)


# By class: optax's function, our defaults of what it takes by position, our names of its options, and options to draw.
BETA, DECAY = [0.0, 0.5, 0.8, 0.9, 0.99], [0.0, 0.01, 0.1]
OPTIMIZERS = {
    "ADOPT": (decoupled(optax.contrib._adopt.scale_by_adopt), 1e-3, {"weightDecay": "weight_decay", "clipping": "use_clipping"}, {"betas": (BETA, BETA), "eps": [1e-6, 1e-3], "weightDecay": DECAY, "clipping": [True, False]}),
    "Adan": (functools.partial(optax.adan, eps_root=0.0), 1e-3, {"weightDecay": "weight_decay"}, {"betas": (BETA, BETA, BETA), "eps": [1e-8, 1e-3], "weightDecay": DECAY}),
    "DAdaptAdamW": (with_betas(optax.contrib.dadapt_adamw), 1.0, {"weightDecay": "weight_decay", "d0": "estim_lr0"}, {"betas": (BETA, BETA), "eps": [1e-8, 1e-3], "weightDecay": DECAY, "d0": [1e-6, 1e-3, 0.1]}),
    "GaLore": (galore, 1e-3, {"weightDecay": "weight_decay", "updateProjectionGap": "update_proj_gap"}, {"betas": (BETA, BETA), "eps": [1e-8, 1e-3], "weightDecay": DECAY, "rank": [1, 2, 3], "scale": [0.25, 2.0], "projectionType": ["reverseStd"]}),
    "Prodigy": (with_betas(optax.contrib.prodigy), 1.0, {"weightDecay": "weight_decay", "d0": "estim_lr0", "dCoef": "estim_lr_coef", "safeguardWarmup": "safeguard_warmup"}, {"betas": (BETA, BETA), "beta3": [0.5, 0.9, 0.99], "eps": [1e-8, 1e-3], "weightDecay": DECAY, "d0": [1e-6, 1e-3, 0.1], "dCoef": [0.5, 1.0, 2.0], "safeguardWarmup": [True, False]}),
    "Sophia": (sophia, 1e-4, {"weightDecay": "weight_decay", "clipThreshold": "clip_threshold"}, {"betas": (BETA, BETA), "eps": [1e-8, 1e-3], "weightDecay": DECAY, "gamma": [0.01, 1.0, 10.0], "clipThreshold": [0.5, 1.0, None]}),
    "Yogi": (optax.yogi, 1e-2, {}, {"betas": (BETA, BETA), "eps": [1e-8, 1e-3]}),
    "LARS": (optax.lars, 1e-3, {"weightDecay": "weight_decay", "trustCoefficient": "trust_coefficient"}, {"weightDecay": DECAY, "trustCoefficient": [1e-3, 0.1], "eps": [0.0, 1e-3], "momentum": BETA, "nesterov": [True, False]}),
}


def numbers(shape, tensor, step):
    """At step 0 the parameter, then gradients."""
    values = []
    for i in range(int(numpy.prod(shape))):
        if step == 0:
            values.append(((i * 37 + tensor * 11) % 64 - 31) / 16)
        else:
            values.append(((step * step * 7 + i * 13 * step + tensor * 5 + i * i) % 101 - 50) / 32)
    return numpy.array(values).reshape(shape)


def run(name, options, dtype):
    make, lr, names, _ = OPTIMIZERS[name]
    sign = -1 if options.get("maximize") else 1
    given = renamed(betas({key: value for key, value in options.items() if key not in ("lr", "maximize")}), **names)
    signed = {"sign": sign} if name == "Sophia" else {}
    optimizer = make(options.get("lr", lr), **given, **signed)
    if optimizer is None:
        return None
    at = lambda step: [jnp.asarray(numbers(shape, k, step), dtype) for k, shape in enumerate(SHAPES)]
    params = at(0)
    state = optimizer.init(params)
    for step in range(1, STEPS[dtype] + 1):
        updates, state = optimizer.update([sign * gradient for gradient in at(step)], state, params)
        params = optax.apply_updates(params, updates)
    text = [base64.b64encode(numpy.asarray(param, dtype).tobytes()).decode() for param in params]
    estimated = {"estimatedEvery": ESTIMATED_EVERY} if name == "Sophia" else {}
    return {"optimizer": name, "options": options, "dtype": dtype, "steps": STEPS[dtype], **estimated, "params": text}


def drawn(choices, source):
    pick = lambda values: [source.choice(each) for each in values] if isinstance(values, tuple) else source.choice(values)
    return {"lr": source.choice([0.003, 0.01, 0.05]), **{key: pick(values) for key, values in choices.items() if source.random() < 0.7}}


folder = pathlib.Path(sys.argv[1])
runs = []
for name, configurations in json.loads((folder / "package.json").read_text())["opt"]["optimizers"].items():
    if name not in OPTIMIZERS:
        continue
    source = random.Random(1)
    every = configurations + [drawn(OPTIMIZERS[name][3], source) for _ in range(6)]
    runs += [each for options in every for dtype in STEPS if (each := run(name, options, dtype))]
lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in runs)
(folder / "testing").mkdir(exist_ok=True)
(folder / "testing/optax.json").write_text(f'{{"optax":"{optax.__version__}","shapes":{json.dumps(SHAPES)},"runs":[\n{lines}\n]}}\n')
