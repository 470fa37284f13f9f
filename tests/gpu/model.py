"""A small Llama with random weights in fp16, as exllamav3 loads it from a Hugging Face folder."""

from __future__ import annotations

import json
from pathlib import Path

from tests.exllamav3.folder import CHAT_TEMPLATE
from tests.support.tokenizers import EOS, byte_level_tokenizer

WIDTH = 640  # columns of the logits: more than tokens, and a multiple of what kernels like


def write_random_model(folder: Path, *, layers: int = 96, seed: int = 0) -> Path:
    """Narrow and deep: 60 million numbers, and a step of milliseconds, as those of models that people serve."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = byte_level_tokenizer()
    config = LlamaConfig(
        vocab_size=WIDTH,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(EOS),
    )
    torch.manual_seed(seed)
    LlamaForCausalLM(config).to(torch.float16).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "eos_token": EOS,
        "chat_template": CHAT_TEMPLATE,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
