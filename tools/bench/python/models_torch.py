"""The Llama of models/work.ts by transformers: steps of training, and tokens that it writes."""
import torch
from real_data import BATCHES, first_weights, integers
from session import THREADS, Unavailable, serve

torch.set_num_threads(THREADS)
BATCH, LENGTH, PROMPT, TOKENS = 4, 256, 16, 32
VOCABULARY = 10_000


def make_model():
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        raise Unavailable("transformers is not installed") from None
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=384,
            intermediate_size=1024,
            num_hidden_layers=10,
            num_attention_heads=6,
            num_key_value_heads=2,
            max_position_embeddings=256,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    with torch.no_grad():
        for index, (name, parameter) in enumerate(model.named_parameters()):
            parameter.copy_(torch.from_numpy(first_weights(index, name, tuple(parameter.shape))))
    return model


def open_work(request):
    model = make_model()
    values = []
    if request["kind"] == "decode":
        prompt = torch.from_numpy(integers(PROMPT, 31, VOCABULARY))[None]
        model.eval()

        def run(steps):
            for _ in range(steps):
                with torch.no_grad():
                    written = model.generate(
                        prompt,
                        attention_mask=torch.ones_like(prompt),
                        max_new_tokens=TOKENS,
                        do_sample=False,
                        pad_token_id=0,
                    )
                values.extend(written[0, PROMPT:].tolist())

        return run, lambda count: values[:count]

    batches = [
        torch.from_numpy(integers(BATCH * LENGTH, 104729 + 2 * index, VOCABULARY)).reshape(BATCH, LENGTH)
        for index in range(BATCHES)
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loss_of = lambda tokens: model(input_ids=tokens, labels=tokens, use_cache=False).loss
    if request["variant"] == "torch.compile":
        loss_of = torch.compile(loss_of)

    def train(steps):
        for _ in range(steps):
            loss = loss_of(batches[len(values) % BATCHES])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            values.append(loss.item())

    return train, lambda count: values[:count]


serve(open_work)
