# The transformer of tiny-transformer.ts with an adapter of peft, trained with torch's AdamW.
# stdin: { sizes, ids, lr, runs: [{ state, adapter, batches, options, folder?, load? }] }; stdout: [{ losses, logits, merged, names }]
# `load`: an adapter that opens in place of a new one; `folder`: where the trained one is saved.
import json, sys
import torch
import torch.nn.functional as F
from peft import LoraConfig, PeftModel, get_peft_model, set_peft_model_state_dict, get_peft_model_state_dict
from torch import nn
from transformers import PretrainedConfig
from transformers.loss.loss_utils import ForCausalLMLoss

given = json.load(sys.stdin)
sizes = given["sizes"]
width, heads = sizes["width"], sizes["heads"]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_norm = nn.RMSNorm(width, eps=1e-5)
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width)
        self.o_proj = nn.Linear(width, width, bias=False)
        self.post_norm = nn.RMSNorm(width, eps=1e-5)
        self.up_proj = nn.Linear(width, sizes["hidden"], bias=False)
        self.down_proj = nn.Linear(sizes["hidden"], width, bias=False)

    def forward(self, x):
        b, l, _ = x.shape
        h = self.input_norm(x)
        q, k, v = (p(h).view(b, l, heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, l, width)
        x = x + self.o_proj(a)
        return x + self.down_proj(F.silu(self.up_proj(self.post_norm(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = PretrainedConfig()
        self.embed = nn.Embedding(sizes["tokens"], width)
        self.layers = nn.ModuleList(Block() for _ in range(sizes["blocks"]))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, sizes["tokens"], bias=False)

    def prepare_inputs_for_generation(self, input_ids, **_):
        return {"input_ids": input_ids}

    def forward(self, input_ids, **_):
        x = self.embed(input_ids)
        for block in self.layers:
            x = block(x)
        return self.head(self.norm(x))


def trained(run):
    base = Model()
    base.load_state_dict({name: torch.tensor(values) for name, values in run["state"].items()})
    if "load" in run:
        model = PeftModel.from_pretrained(base, run["load"], is_trainable=True)
    else:
        model = get_peft_model(base, LoraConfig(**run["options"]))
        loaded = {name: torch.tensor(values) for name, values in run["adapter"].items()}
        assert not set_peft_model_state_dict(model, loaded).unexpected_keys
    model.train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=given["lr"])
    losses = []
    for batch in run["batches"]:
        loss = ForCausalLMLoss(model(torch.tensor(batch["input"])), torch.tensor(batch["labels"]), sizes["tokens"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if "folder" in run:
        model.save_pretrained(run["folder"])
    names = sorted(get_peft_model_state_dict(model))
    ids = torch.tensor(given["ids"])
    with torch.no_grad():
        logits = model.eval()(ids).flatten().tolist()
        merged = model.merge_and_unload()(ids).flatten().tolist()
    return {"losses": losses, "logits": logits, "merged": merged, "names": names}


json.dump([trained(run) for run in given["runs"]], sys.stdout)
