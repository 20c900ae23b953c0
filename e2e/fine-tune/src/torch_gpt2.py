# GPT-2 as its authors describe it, on PyTorch, with the names and shapes of Hugging Face's files; then LoRA on c_attn.
# stdin: { sizes, batches, steps, adapters }; writes the state to argv[1]; stdout: { logits, losses }
import json, math, sys
import torch
import torch.nn.functional as F

given = json.load(sys.stdin)
tokens, width, length, blocks, heads = (given["sizes"][k] for k in ("tokens", "width", "length", "blocks", "heads"))
torch.manual_seed(0)
names = {"wte.weight": (tokens, width), "wpe.weight": (length, width), "ln_f.weight": (width,), "ln_f.bias": (width,)}
for i in range(blocks):
    for name, shape in {
        "ln_1.weight": (width,), "ln_1.bias": (width,), "ln_2.weight": (width,), "ln_2.bias": (width,),
        "attn.c_attn.weight": (width, 3 * width), "attn.c_attn.bias": (3 * width,),
        "attn.c_proj.weight": (width, width), "attn.c_proj.bias": (width,),
        "mlp.c_fc.weight": (width, 4 * width), "mlp.c_fc.bias": (4 * width,),
        "mlp.c_proj.weight": (4 * width, width), "mlp.c_proj.bias": (width,),
    }.items():
        names[f"h.{i}.{name}"] = shape
p = {name: torch.randn(shape) * 0.2 for name, shape in names.items()}
torch.save({"transformer." + name: value for name, value in p.items()}, sys.argv[1])

lora = {name: torch.tensor(rows, requires_grad=True) for name, rows in given["adapters"].items()}

def norm(x, name):
    return F.layer_norm(x, (width,), p[name + ".weight"], p[name + ".bias"])

def conv1d(x, name):
    return x @ p[name + ".weight"] + p[name + ".bias"]

def forward(ids):
    b, l = ids.shape
    x = p["wte.weight"][ids] + p["wpe.weight"][:l]
    for i in range(blocks):
        h = norm(x, f"h.{i}.ln_1")
        qkv = conv1d(h, f"h.{i}.attn.c_attn")
        at = f"base_model.model.transformer.h.{i}.attn.c_attn.lora_"
        qkv = qkv + (h @ lora[at + "A.weight"].T @ lora[at + "B.weight"].T) * (given["alpha"] / given["rank"])
        q, k, v = (t.view(b, l, heads, -1).transpose(1, 2) for t in qkv.split(width, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, l, width)
        x = x + conv1d(a, f"h.{i}.attn.c_proj")
        h = conv1d(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        x = x + conv1d(F.gelu(h, approximate="tanh"), f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ p["wte.weight"].T

logits = forward(torch.tensor(given["batches"][0])[:, :-1]).flatten().tolist()
optimizer = torch.optim.AdamW(lora.values(), lr=given["lr"], weight_decay=0)
losses = []
for batch in given["batches"]:
    ids = torch.tensor(batch)
    loss = F.cross_entropy(forward(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
json.dump({"logits": logits, "losses": losses}, sys.stdout)
