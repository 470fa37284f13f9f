"""A model folder with random weights and a small tokenizer: a real backend without a real model."""

import json
from pathlib import Path

from tests.support.tokenizers import EOS, byte_level_tokenizer

CONTEXT = 512
CHAT_TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"


def write_tiny_model(folder: Path, *, seed: int = 0) -> Path:
    """Write a two-layer Llama of 0.2 million parameters into `folder`."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = byte_level_tokenizer()
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size() + 3,  # padded, as the logits of real models often are
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(EOS),
    )
    torch.manual_seed(seed)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "eos_token": EOS,
        "chat_template": CHAT_TEMPLATE,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
