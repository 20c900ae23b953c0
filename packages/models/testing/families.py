"""Tiny models of each family by transformers: python families.py goldens FILE | save FOLDER | read FOLDERS.

Weights are made by a formula of their names, so that goldens store no weights.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

SMALL = {
    "vocab_size": 61,
    "hidden_size": 16,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": 0,
}


def rope(kind, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 1000.0, **more}}


FAMILIES = {
    "gpt2": {
        "model_type": "gpt2",
        **{"vocab_size": 61, "n_positions": 128, "n_embd": 16, "n_layer": 2, "n_head": 4},
        **{"bos_token_id": 1, "eos_token_id": None},
    },
    "llama": {"model_type": "llama", **SMALL},
    "llama-tied-biased": {
        "model_type": "llama",
        **SMALL,
        **{"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True, "head_dim": 6},
        **rope("linear", factor=2.5),
    },
    "llama3": {
        "model_type": "llama",
        **SMALL,
        **rope(
            "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64
        ),
    },
    "llama-dynamic": {
        "model_type": "llama",
        **SMALL,
        "max_position_embeddings": 12,
        **rope("dynamic", factor=3.0),
    },
    "qwen2": {"model_type": "qwen2", **SMALL},
    "qwen2-yarn": {
        "model_type": "qwen2",
        **SMALL,
        **rope("yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=8.0),
    },
    "qwen2-sliding": {
        "model_type": "qwen2",
        **SMALL,
        **{"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    },
    "qwen3": {"model_type": "qwen3", **SMALL, "head_dim": 8, "tie_word_embeddings": True},
    "gemma3": {
        "model_type": "gemma3_text",
        **SMALL,
        **{"num_hidden_layers": 3, "head_dim": 8, "query_pre_attn_scalar": 12, "sliding_window": 7},
        **{"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
        **{"final_logit_softcapping": 0.5},
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
        },
    },
}

TOKENS = [[(7 * i * i + 13 * i) % 61 for i in range(24)]]
# Lengths of the prompts of a batch.
PROMPTS = [3, 11, 7]
NEW = 64


def hash_of(name):
    value = 0
    for character in name:
        value = (value * 31 + ord(character)) % 2**32
    return value


def weights_of(name, shape):
    size = int(np.prod(shape))
    places = np.arange(size, dtype=np.uint64)
    numbers = (places * np.uint64(2654435761) + np.uint64(hash_of(name))) % np.uint64(2**32)
    numbers = (numbers * np.uint64(1103515245) + np.uint64(12345)) % np.uint64(2**32)
    values = numbers.astype(np.float64) / 2**31 - 1
    if "norm" in name or "ln_" in name:
        values = values * 0.25 + 1
    if "wte" in name or "wpe" in name or "embed_tokens" in name:
        values = values * 0.125
    return torch.from_numpy(values.astype(np.float32)).reshape(tuple(shape))


def model_of(config):
    options = dict(config)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**options), attn_implementation="eager")
    model.eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights_of(name, parameter.shape))
    return model


def answers(model, tokens, config):
    with torch.no_grad():
        logits = model(torch.tensor(tokens)).logits
        greedy = []
        longest = 12 if "dynamic" in str(config) else 128
        for length in PROMPTS:
            prompt = torch.tensor([TOKENS[0][:length]])
            made = []
            for _ in range(NEW if longest > 12 else 0):
                made.append(int(model(prompt).logits[0, -1].argmax()))
                prompt = torch.cat([prompt, torch.tensor([[made[-1]]])], dim=1)
            greedy.append(made)
    # 8 digits are float32's.
    return {"logits": " ".join(f"{x:.8g}" for x in logits.flatten().tolist()), "greedy": greedy}


def main():
    what, place = sys.argv[1:3]
    if what == "goldens":
        found = {}
        for name, config in FAMILIES.items():
            model = model_of(config)
            written = json.loads(model.config.to_json_string())
            found[name] = {"config": written, **answers(model, TOKENS, config)}
        Path(place).write_text(
            "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name])}" for name in found) + "\n}\n"
        )
    if what == "save":
        for name, config in FAMILIES.items():
            sharded = {"max_shard_size": "8KB"} if name == "llama" else {}
            model_of(config).save_pretrained(Path(place) / name, **sharded)
    if what == "read":
        found = []
        for folder in sys.argv[2:]:
            model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
            model.eval()
            with torch.no_grad():
                found.append(model(torch.tensor(TOKENS)).logits.flatten().tolist())
        print(json.dumps(found))


main()
