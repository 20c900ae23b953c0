"""Runs programs in PyTorch in float64: one JSON a line comes in, its rounds (or why PyTorch rejects it) go out."""
import copy, json, math, sys, warnings
import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
torch.set_num_threads(1)
DTYPES = {"i32": torch.int32, "u8": torch.uint8, "bool": torch.bool}
OPTIONS = {
    "weightDecay": "weight_decay", "momentumDecay": "momentum_decay", "decoupledWeightDecay": "decoupled_weight_decay",
    "stepSize": "step_size", "tMax": "T_max", "totalIters": "total_iters", "maxLr": "max_lr", "totalSteps": "total_steps",
}


def dtype_of(dtype):
    return DTYPES.get(dtype, torch.float64)


def named(options):
    floats = lambda value: tuple(float(x) for x in value) if isinstance(value, list) else value
    return {OPTIONS.get(key, key): floats(value) for key, value in options.items()}


def made(numbers, shape, dtype):
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape).to(dtype_of(dtype))


def tensors(a, b):
    return [x if torch.is_tensor(x) else torch.tensor(x, dtype=torch.float64) for x in (a, b)]


def reduced(reduce):
    def run(x, axis=None, keepDim=False):
        axes = list(range(x.dim())) if axis is None else axis
        return x.clone() if axes == [] else reduce(x, axes, keepDim)
    return run


def matmul(a, b, transposeA=False, transposeB=False):
    return torch.matmul(a.mT if transposeA else a, b.mT if transposeB else b)


def cross_entropy(logits, labels):
    rows = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1).long(), reduction="none")
    return rows.reshape(labels.shape)


def taken(x, start, end, axis):
    index = [slice(None)] * x.dim()
    index[axis] = slice(start, end)
    return x[tuple(index)].clone()


def window(options):
    return {key: options[key] for key in ("stride", "padding") if key in options}


def topk(x, k, axis, largest):
    # Of equals the first comes first.
    return torch.sort(x, dim=axis, descending=largest, stable=True).values.narrow(axis, 0, k)


def contiguous(x):
    return x.clone(memory_format=torch.contiguous_format)


def batch_norm(x, w, b, **_):
    return F.batch_norm(x, None, None, w, b, training=True)


def recurrent(function, states):
    def run(x, *weights, hidden, **_):
        sequence = x.unsqueeze(1) if x.dim() == 2 else x
        zero = sequence.new_zeros(1, sequence.shape[1], hidden)
        begin = (zero, zero) if states == 2 else zero
        y = function(sequence, begin, list(weights), len(weights) == 4, 1, 0.0, True, False, False)[0]
        return y.squeeze(1) if x.dim() == 2 else y

    return run


def attention(x, w, b, out_w, out_b, heads, isCausal, **_):
    mask = torch.ones(x.shape[0], x.shape[0], dtype=torch.bool).triu(1) if isCausal else None
    rest = dict(need_weights=False, attn_mask=mask)
    return F.multi_head_attention_forward(x, x, x, x.shape[-1], heads, w, b, None, None, False, 0.0, out_w, out_b, **rest)[0]


OPS = {
    **{name: (lambda name: lambda a, b: getattr(a, name)(b))(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "where": lambda c, a, b: torch.where(c, a, b), "maskedFill": lambda x, mask, value: x.masked_fill(mask, value),
    "clamp": lambda x, low=None, high=None: x.clamp(low, high), "min": reduced(torch.amin),
    "var": lambda x, axis, keepDim: torch.var(x, axis, correction=0, keepdim=keepDim),
    "norm": lambda x, axis, keepDim: x.norm(2, axis, keepDim), "topk": topk,
    "gatherAlong": lambda x, at, axis: x.gather(axis, at.long()),
    "oneHot": lambda at, classes: F.one_hot(at.long(), classes).to(torch.int32),
    "squeeze": lambda x: x.squeeze(), "unsqueeze": lambda x, axis: x.unsqueeze(axis),
    "expand": lambda x, shape: contiguous(x.expand(shape)), "stack": lambda *xs, axis: torch.stack(xs, axis),
    "split": lambda x, size, axis, piece: contiguous(x.split(size, axis)[piece]),
    "pad": lambda x, padding, value: contiguous(F.pad(x, padding, value=value)),
    "tril": lambda x, diagonal: x.tril(diagonal), "triu": lambda x, diagonal: x.triu(diagonal),
    "silu": F.silu, "geluTanh": lambda x: F.gelu(x, approximate="tanh"), "softplus": F.softplus, "leakyRelu": lambda x: F.leaky_relu(x, 0.25),
    "cumsum": lambda x, axis: x.cumsum(axis),
    "neg": lambda x: -x, "abs": torch.abs, "relu": torch.relu, "sqrt": torch.sqrt, "exp": torch.exp, "log": torch.log,
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu, "erf": torch.erf, "sin": torch.sin, "cos": torch.cos,
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "pow": lambda a, b: a ** b, "fma": lambda a, b, c: a * b + c, "less": lambda a, b: a < b,
    "maximum": lambda a, b: torch.maximum(*tensors(a, b)), "minimum": lambda a, b: torch.minimum(*tensors(a, b)),
    "select": lambda c, a, b: torch.where(c, a, b),
    "sum": reduced(torch.sum), "mean": reduced(torch.mean), "max": reduced(torch.amax),
    "softmax": lambda x, axis: torch.softmax(x, axis), "logSoftmax": lambda x, axis: torch.log_softmax(x, axis),
    "layerNorm": lambda x, w, b=None: F.layer_norm(x, w.shape, w, b),
    "attention": lambda q, k, v, isCausal: F.scaled_dot_product_attention(q, k, v, is_causal=isCausal, scale=0.5),
    "matmul": matmul, "gather": lambda table, at: table[at.long()], "crossEntropy": cross_entropy,
    "conv2d": lambda x, w, **options: F.conv2d(x, w, **options),
    "maxPool2d": lambda x, kernel, stride: F.max_pool2d(x, kernel, stride),
    "concat": lambda *xs, axis: torch.cat(xs, axis), "reshape": lambda x, shape: x.view(shape), "slice": taken,
    "permute": lambda x, axes: x.permute(axes).clone(memory_format=torch.contiguous_format),
    "transpose": lambda x: x.transpose(-2, -1).clone(memory_format=torch.contiguous_format),
    "detach": lambda x: x.detach(), "clone": torch.clone,
    "Linear": lambda x, w, b=None, **_: F.linear(x, w, b),
    "Conv2d": lambda x, w, b=None, **options: F.conv2d(x, w, b, **window(options)),
    "LayerNorm": lambda x, w, b=None, **_: F.layer_norm(x, w.shape, w, b),
    "Conv1d": lambda x, w, b, stride, **_: F.conv1d(x, w, b, stride),
    "ConvTranspose2d": lambda x, w, b, stride, **_: F.conv_transpose2d(x, w, b, stride),
    "BatchNorm1d": batch_norm, "BatchNorm2d": batch_norm,
    "GroupNorm": lambda x, w, b, groups, **_: F.group_norm(x, groups, w, b),
    "RMSNorm": lambda x, w, eps, **_: F.rms_norm(x, w.shape, w, eps),
    "LSTM": recurrent(torch._VF.lstm, 2), "GRU": recurrent(torch._VF.gru, 1), "MultiheadAttention": attention,
    "avgPool2d": lambda x, kernel, stride: F.avg_pool2d(x, kernel, stride),
    "Embedding": lambda at, w, **_: w[at.long()],
}


class World:
    def __init__(self, program):
        self.program, self.values, self.saved, self.plain, self.results = program, {}, {}, {}, {}
        self.dtypes = {leaf["id"]: leaf["dtype"] for leaf in program["leaves"]}
        for leaf in program["leaves"]:
            value = made(leaf["numbers"], leaf["shape"], leaf["dtype"])
            self.values[leaf["id"]] = value.requires_grad_() if leaf["kind"] != "data" else value
        self.optimizers, self.schedules = {}, {}
        for use in program["optimizers"]:
            groups = [{"params": self.listed(g["params"]), **named(g["options"])} for g in use["groups"]]
            options = named(use["options"])
            penalty = options.pop("regularizer", None)
            for group in groups:
                group.setdefault("regularizer", penalty)
            made_of = getattr(torch.optim, use["kind"])(groups, foreach=False, **options)
            self.optimizers[use["id"]], self.schedules[use["id"]] = made_of, None
            made_of.defaults["regularizer"] = penalty
            if use["schedule"]:
                kind = getattr(torch.optim.lr_scheduler, use["schedule"]["kind"])
                self.schedules[use["id"]] = kind(made_of, **named(use["schedule"]["options"]))

    def listed(self, ids):
        return [self.values[id] for id in ids]

    def run(self, statements):
        for statement in statements:
            getattr(self, statement["do"])(statement)

    def op(self, s):
        operands = [{**self.values, **self.plain}[of] if isinstance(of, str) else of for of in s["of"]]
        if s["op"] == "to":
            dtype = dtype_of(s["options"]["dtype"])
            cast = s["options"]["dtype"] != s["options"]["from"]
            value = operands[0].clone() if cast else operands[0].view(operands[0].shape)
            self.values[s["id"]] = value.to(dtype)
        else:
            self.values[s["id"]] = OPS[s["op"]](*operands, **s.get("options", {}))

    def constant(self, s):
        self.values[s["id"]] = made(s["numbers"], s["shape"], s["dtype"])

    def set(self, s):
        target = self.values[s["to"]]
        source = self.values[s["from"]] if isinstance(s["from"], str) else made(s["from"], target.shape, "f64")
        with torch.no_grad():
            target.copy_(source)

    def stale(self, s):
        of, by = self.values[s["of"]], self.values[s["by"]]
        loss = (of * by).sum()
        with torch.no_grad():
            by.copy_(of)
        try:
            loss.backward()
        except RuntimeError:
            return
        raise AssertionError("differentiates what was overwritten")

    def tidy(self, s):
        self.run(s["body"])

    def when(self, s):
        if self.plain[s["flag"]]:
            self.run(s["body"])

    def freeze(self, s):
        self.values[s["of"]].requires_grad_(not s["frozen"])

    def noGrad(self, s):
        with torch.no_grad():
            self.run(s["body"])

    def keep(self, s):
        pass

    def dispose(self, s):
        if s["of"] in self.leaves():
            raise RuntimeError("a leaf is disposed")

    def leaves(self):
        return {leaf["id"] for leaf in self.program["leaves"]}

    def backward(self, s):
        # PyTorch may keep a gradient that it is given as a leaf's own, and clears it with that.
        self.values[s["of"]].backward(None if s["gradient"] is None else self.values[s["gradient"]].clone())

    def gradient(self, s):
        leaf, value = self.values[s["of"]], s["value"]
        if value is None:
            leaf.grad = None
        elif isinstance(value, list):
            leaf.grad = made(value, leaf.shape, "f64")
        elif leaf.grad is not None:
            leaf.grad = leaf.grad * value

    def clip(self, s):
        params, limit = self.listed(s["params"]), s["limit"]
        if s["how"] == "norm":
            torch.nn.utils.clip_grad_norm_(params, limit, s.get("normType", 2))
        elif s["how"] == "each":
            for param in params:
                if param.grad is not None:
                    norm = param.grad.norm()
                    param.grad = param.grad * limit / norm if norm > limit else param.grad
        else:
            torch.nn.utils.clip_grad_value_(params, limit)

    def hooks(self, id, event):
        for use in self.program["optimizers"]:
            for hook in use.get("hooks", []):
                if use["id"] == id and hook["event"] == event:
                    self.scoped(hook["body"])

    def scoped(self, statements):
        outer = set(self.values)
        self.run(statements)
        self.values = {id: value for id, value in self.values.items() if id in outer}

    def step(self, s):
        optimizer = self.optimizers[s["optimizer"]]
        self.hooks(s["optimizer"], "beforeStep")
        plain = []
        for group in optimizer.param_groups:
            penalty = group.get("regularizer")
            for param in group["params"]:
                if penalty is None or param.grad is None:
                    continue
                plain.append((param, param.grad))
                way = param.sign() if penalty["kind"] == "l1" else param
                sign = -1 if group["maximize"] else 1
                param.grad = param.grad + sign * penalty["coefficient"] * way.detach()
        optimizer.step()
        for param, grad in plain:
            param.grad = grad
        self.hooks(s["optimizer"], "afterStep")

    def schedule(self, s):
        self.schedules[s["optimizer"]].step()

    def save(self, s):
        self.saved[s["optimizer"]] = copy.deepcopy(self.optimizers[s["optimizer"]].state_dict())

    def load(self, s):
        if s["optimizer"] in self.saved:
            self.optimizers[s["optimizer"]].load_state_dict(copy.deepcopy(self.saved[s["optimizer"]]))

    def reset(self, s):
        self.optimizers[s["optimizer"]].state.clear()

    def zeroGrad(self, s):
        self.optimizers[s["optimizer"]].zero_grad(set_to_none=s["setToNull"])

    def addGroup(self, s):
        group = {"params": self.listed(s["params"]), **named(s["options"])}
        self.optimizers[s["optimizer"]].add_param_group(group)

    def option(self, s):
        self.optimizers[s["optimizer"]].param_groups[s["group"]].update(named({s["name"]: s["value"]}))

    def round(self, round):
        self.run(round["before"])
        body, outer, given = self.program["bodies"][round["body"]], dict(self.values), {}
        for id in body["args"]:
            argument = round["args"].get(id)
            if argument is not None and not isinstance(argument, dict):
                self.plain[id] = argument
            elif argument is None:
                continue
            elif "result" in argument:
                given[id] = self.results[argument["result"]]
            elif "as" not in argument:
                given[id] = made(argument["numbers"], argument["shape"], self.dtypes[id])
        for id in body["args"]:
            argument = round["args"].get(id)
            if isinstance(argument, dict) and "as" in argument:
                given[id] = given.get(argument["as"], self.values[argument["as"]])
        self.values.update(given)
        self.run(body["statements"])
        seen = {f"result {id}": self.values[id] for id in body["results"]}
        seen |= {f"argument {id}": self.values[id] for id in given}
        self.results = {id: self.values[id].detach() for id in body["results"]}
        self.values = outer
        for id, value in self.values.items():
            if id in self.leaves():
                seen[id] = value
                if value.grad is not None:
                    seen[f"{id}.grad"] = value.grad
        for id, optimizer in self.optimizers.items():
            for name in self.leaves():
                state = optimizer.state.get(self.values[name], {})
                for key in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"):
                    if key in state:
                        seen[f"{id}.{name}.{key}"] = state[key]
        return {name: numbers(value) for name, value in seen.items()}


def numbers(value):
    return [x if math.isfinite(x) else None for x in value.detach().to(torch.float64).reshape(-1).tolist()]


for line in sys.stdin:
    program = json.loads(line)
    try:
        world = World(program)
        world.run(program["prelude"])
        answer = {"rounds": [world.round(round) for round in program["rounds"]]}
    except (RuntimeError, KeyError) as error:
        answer = {"rejected": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
