"""The shared workload as token ids of Qwen's vocabulary, and what every engine must refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from tokenizers import Tokenizer

from larksong.api.commands.bench.workload import RESPONSE_FORMAT, turn
from larksong.engine.backends.model_store import cache_folder
from tests.support.qwen_tokenizer import qwen_tokenizer

FORMATS = ("hermes", "qwen3_coder", RESPONSE_FORMAT)
SHORT = {"hermes": "hermes", "qwen3_coder": "xml", RESPONSE_FORMAT: "rf"}
"""how the tables call the formats"""
TOOL_COUNTS = (10, 200)

# A parameter that the tool has not (JSON and pseudo-XML), a value that the schema's enum has not.
NEGATIVES = {
    "hermes": '<tool_call>\n{"name": "read", "arguments": {"path": "x", "content": "y"}}\n</tool_call>',
    "qwen3_coder": (
        "<tool_call>\n<function=read>\n<parameter=path>\nx\n</parameter>\n<parameter=content>\ny\n"
        "</parameter>\n</function>\n</tool_call>"
    ),
    RESPONSE_FORMAT: '{"title": "x", "severity": "fatal"',
}


@dataclass(frozen=True, eq=False)
class Workload:
    """The tokenizer that all engines share, and texts as its token ids."""

    file: Path
    """tokenizer.json"""
    width: int
    """columns of the model's logits"""
    eos: str

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_file(str(self.file))

    @cached_property
    def eos_id(self) -> int:
        token: int | None = self.tokenizer.token_to_id(self.eos)
        if token is None:
            raise ValueError(f"{self.file} has no token {self.eos!r}")
        return token

    @property
    def words(self) -> int:
        """Words of a packed mask."""
        return (self.width + 31) // 32

    @lru_cache(maxsize=1024)  # noqa: B019 - there is one workload a process
    def ids(self, format: str, number: int) -> Sequence[int]:
        """Turn `number` in a format, the end-of-sequence token at its end."""
        return self._encode(turn(number).text(format))

    def negative(self, format: str) -> Sequence[int]:
        """A turn that must be refused before its end."""
        return self._encode(NEGATIVES[format])

    def _encode(self, text: str) -> list[int]:
        return [*self.tokenizer.encode(text, add_special_tokens=False).ids, self.eos_id]


def qwen() -> Workload:
    """Qwen's 151,669 tokens with logits 151,936 wide; made at the first call on a machine."""
    file = cache_folder() / "bench" / "qwen-tokenizer.json"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        qwen_tokenizer().save(str(file), pretty=False)
    return Workload(file, 151_936, "<|im_end|>")
