"""A small byte-level tokenizer with a chat template, and what it makes of texts; how tokens are chosen: python tokenizer.py FOLDER."""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast
from transformers.generation import logits_process

TEXTS = ["Once upon a time", "  two  spaces\n", "na\u00efve caf\u00e9 \u2603 \U0001f600!", "<|end|>x", "it's 1234"]
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]

folder = Path(sys.argv[1])
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
special = ["<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
trainer = trainers.BpeTrainer(
    vocab_size=300, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
)
tokenizer.train_from_iterator(["once upon a time there was a time upon which once it was time"] * 3, trainer)
tokenizer.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", 0)])
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>")
fast.chat_template = TEMPLATE
fast.save_pretrained(folder)


def probabilities(**options):
    """Of 12 tokens, after tokens 3 and 5."""
    logits = torch.tensor([[((i * 7) % 12) / 4 - 1 for i in range(12)]])
    kinds = {
        "repetitionPenalty": logits_process.RepetitionPenaltyLogitsProcessor,
        "temperature": logits_process.TemperatureLogitsWarper,
        "topK": logits_process.TopKLogitsWarper,
        "topP": logits_process.TopPLogitsWarper,
    }
    scores = logits
    for name, kind in kinds.items():
        if name in options:
            scores = kind(options[name])(torch.tensor([[3, 5, 3]]), scores)
    return {"options": options, "probabilities": scores.softmax(-1)[0].tolist()}


answers = {
    "texts": [{"text": text, "tokens": fast.encode(text)} for text in TEXTS],
    "messages": MESSAGES,
    "choices": [
        probabilities(temperature=0.7),
        probabilities(temperature=1.0, topK=4),
        probabilities(temperature=1.3, topP=0.75),
        probabilities(temperature=0.9, repetitionPenalty=1.5, topK=7, topP=0.6),
    ],
    "chat": fast.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True),
}
(folder / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")
