"""The token that ends a turn, as the files beside a tokenizer say."""

from __future__ import annotations

import json
from pathlib import Path

from larksong.engine.vocabulary import VocabularyError


def end_token(file: Path) -> str:
    """The end-of-sequence token that the tokenizer's own settings name.

    Raises VocabularyError where they name none.
    """
    settings = file.with_name("tokenizer_config.json")
    token = json.loads(settings.read_text(encoding="utf-8")).get("eos_token") if settings.is_file() else None
    if isinstance(token, dict):  # with its flags
        token = token["content"]
    if not token:
        raise VocabularyError(f"which token ends a turn? {settings} does not say: give it with --eos")
    return str(token)
