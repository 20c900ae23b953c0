"""Prints the public names of PyTorch's modules, for the page of features."""
import inspect
import re

import torch
import torch.distributions

# Parts of kernels, of quantization and of the compiler, which no program calls.
INNER = re.compile(
    r"^_|_$|_copy$|^(quantize|fbgemm|miopen|native_|q_|sym_|unsafe_|fake_quantize|dequantize|int_repr|fused_|choose_q|batch_norm_|slice_inverse)"
    r"|_with_indices$|^(convolution|hash_tensor|debug_unwrap|is_inference|is_distributed|is_same_size|nonzero_static|(gru|lstm)_cell|rnn_(relu|tanh).*)$"
)
CREATING = "arange empty empty_like eye full full_like linspace logspace ones rand randint randn randperm tensor zeros no_grad manual_seed save load compile"


def called(module):
    found = torch.overrides.get_overridable_functions()[module]
    return sorted({f.__name__ for f in found if not INNER.search(f.__name__)})


def functions(module):
    names = getattr(module, "__all__", None) or dir(module)
    return sorted(n for n in names if not INNER.search(n) and not inspect.isclass(getattr(module, n)) and callable(getattr(module, n)))


def classes(module):
    names = getattr(module, "__all__", None) or dir(module)
    return sorted(n for n in names if inspect.isclass(getattr(module, n)) and not n.startswith("_"))


MODULES = {
    "torch": sorted(set(called(torch)) | set(CREATING.split())),
    "torch.nn": classes(torch.nn.modules),
    "torch.nn.functional": called(torch.nn.functional),
    "torch.linalg": functions(torch.linalg),
    "torch.fft": functions(torch.fft),
    "torch.distributions": classes(torch.distributions),
    "torch.func": functions(torch.func),
    "torch.optim": classes(torch.optim),
    "torch.optim.lr_scheduler": [n for n in classes(torch.optim.lr_scheduler) if n != "LRScheduler"],
    "torch.optim.swa_utils": sorted(torch.optim.swa_utils.__all__),
}
for name, names in MODULES.items():
    print(f"{name}: {' '.join(names)}")
