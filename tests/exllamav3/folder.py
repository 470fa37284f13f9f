"""A model folder for the stand-in: everything of a Llama but the weights."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer

from tests.support.tokenizers import EOS, byte_level_tokenizer

END_OF_TEXT = "<|endoftext|>"
MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
PADDING = 13
"""Columns of the logits beyond the tokenizer's tokens: the three widths differ, and none is a multiple of 32."""

CONTEXT = 16384
CHAT_TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"


def write_folder(
    folder: Path, *, markers: tuple[str, ...] = MARKERS, tokenizer: Tokenizer | None = None, end: str = EOS
) -> Path:
    """Write `config.json` and the tokenizer's files into the new folder `folder`.

    `tokenizer`: another one than the small one with `markers`. `end` ends a turn.
    """
    folder.mkdir(parents=True)
    tokenizer = tokenizer or byte_level_tokenizer(
        added=(
            *(AddedToken(marker, special=False, normalized=False) for marker in markers),
            AddedToken(END_OF_TEXT, special=True, normalized=False),
        ),
        eos=end,
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    ends = [tokenizer.token_to_id(end), tokenizer.token_to_id(END_OF_TEXT)]
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 128,
        "intermediate_size": 128,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "vocab_size": tokenizer.get_vocab_size() + PADDING,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": True,
        "eos_token_id": ends,
        "bos_token_id": None,
    }
    settings = {
        "eos_token": end,
        "chat_template": CHAT_TEMPLATE,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
