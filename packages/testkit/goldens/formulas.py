"""Optimizers that PyTorch lacks, by their formulas in its ops."""
import math, torch


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, in the order of operations of optax.lion."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0, maximize=False, foreach=False):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, g = self.state[p], -p.grad if group["maximize"] else p.grad
                t, m = state.get("step", 0) + 1, state.get("exp_avg", torch.zeros_like(p))
                update = (g * (1 - b1) + m * b1).sign()
                if group["weight_decay"] != 0:
                    update = update + p * group["weight_decay"]
                p.copy_(p + update * -group["lr"])
                state.update(step=torch.tensor(float(t)), exp_avg=g * (1 - b2) + m * b2)


class AdEMAMix(torch.optim.Optimizer):
    """Pagliardini et al. 2024, in the order of operations of their program."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999, 0.9999), alpha=5.0, t_alpha=0, t_beta3=0, eps=1e-8, weight_decay=0, maximize=False, foreach=False):
        super().__init__(params, dict(lr=lr, betas=betas, alpha=alpha, t_alpha=t_alpha, t_beta3=t_beta3, eps=eps, weight_decay=weight_decay, maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2, b3 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, g = self.state[p], -p.grad if group["maximize"] else p.grad
                if not state:
                    state.update(step=0, **{f"exp_avg_{key}": torch.zeros_like(p) for key in ("fast", "slow", "sq")})
                t = int(state["step"]) + 1
                alpha, beta3 = group["alpha"], b3
                if t < group["t_alpha"]:
                    alpha *= t / group["t_alpha"]
                if t < group["t_beta3"]:
                    s = t / group["t_beta3"]
                    beta3 = math.exp(math.log(b1) * math.log(b3) / ((1 - s) * math.log(b3) + s * math.log(b1)))
                fast, slow, sq = (state[f"exp_avg_{key}"] for key in ("fast", "slow", "sq"))
                fast.mul_(b1).add_(g, alpha=1 - b1)
                slow.mul_(beta3).add_(g, alpha=1 - beta3)
                sq.mul_(b2).addcmul_(g, g, value=1 - b2)
                denom = (sq.sqrt() / math.sqrt(1 - b2**t)).add_(group["eps"])
                update = (fast.div(1 - b1**t) + alpha * slow) / denom
                if group["weight_decay"] != 0:
                    update.add_(p, alpha=group["weight_decay"])
                p.add_(-group["lr"] * update)
                state["step"] = torch.tensor(float(t))


class ScheduleFreeAdamW(torch.optim.Optimizer):
    """Defazio et al. 2024, in the order of operations of their program. The step count is each parameter's own."""

    def __init__(self, params, lr=2.5e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, warmup_steps=0, r=0, weight_lr_power=2, maximize=False, foreach=False):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, warmup_steps=warmup_steps, r=r, weight_lr_power=weight_lr_power, maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for y in group["params"]:
                if y.grad is None:
                    continue
                state, g = self.state[y], -y.grad if group["maximize"] else y.grad
                if not state:
                    state.update(step=0, weight_sum=0.0, lr_max=0.0, z=y.clone(), exp_avg_sq=torch.zeros_like(y))
                t, z, sq = int(state["step"]) + 1, state["z"], state["exp_avg_sq"]
                lr = group["lr"] * min(t / group["warmup_steps"], 1) if group["warmup_steps"] else group["lr"]
                lr_max = max(float(state["lr_max"]), lr)
                weight = t ** group["r"] * lr_max ** group["weight_lr_power"]
                weight_sum = float(state["weight_sum"]) + weight
                average = weight / weight_sum if weight_sum else 0.0
                sq.mul_(b2).addcmul_(g, g, value=1 - b2)
                direction = g / sq.div(1 - b2**t).sqrt_().add_(group["eps"])
                if group["weight_decay"] != 0:
                    direction.add_(y, alpha=group["weight_decay"])
                y.lerp_(z, average).add_(direction, alpha=lr * (b1 * (1 - average) - 1))
                z.sub_(direction, alpha=lr)
                counts = {"step": t, "weight_sum": weight_sum, "lr_max": lr_max}
                state.update({key: torch.tensor(value, dtype=torch.float64) for key, value in counts.items()})
