"""What the works in torch share: threads, optimizers and a training step."""
import torch
from session import THREADS, Unavailable, serve  # noqa: F401

torch.set_num_threads(THREADS)


def make_optimizer(name, variant, parameters, **options):
    """`variant`: fused, foreach, single (the loop over tensors) or torch.compile, which trains with the fused one."""
    options["foreach"] = variant == "foreach"
    if name in ("AdamW", "AMSGrad", "SGD", "Adagrad"):
        options["fused"] = variant in ("fused", "torch.compile")
    makers = {
        "AdamW": lambda: torch.optim.AdamW(parameters, **options),
        "AMSGrad": lambda: torch.optim.Adam(parameters, amsgrad=True, **options),
        "Muon": lambda: torch.optim.Muon(parameters),
        "SGD": lambda: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, **options),
    }
    return makers[name]() if name in makers else getattr(torch.optim, name)(parameters, **options)


def make_train(model, optimizer, variant, example):
    """A function that trains on a batch and returns the loss. torch.compile runs here, on the example batch."""

    def loss_of(inputs, labels):
        return torch.nn.functional.cross_entropy(model(inputs), labels)

    if variant == "torch.compile":
        loss_of = torch.compile(loss_of)
        try:
            loss_of(*example).backward()
        except Exception as error:
            raise Unavailable(f"torch.compile failed: {(str(error) or repr(error)).splitlines()[0]}") from error

    def train(inputs, labels):
        optimizer.zero_grad()
        loss = loss_of(inputs, labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return train
