"""Qwen's tokenizer (151,643 ranks and its markers), made from the file that the `dashscope` wheel carries.

The wheel's `qwen.tiktoken` lists byte strings by rank, without merges. A token of rank r is what its bytes
give when merged by the ranks below r, up to the last two parts: those are its merge. (The same recovery is in
transformers' convert_slow_tokenizer.py, `TikTokenConverter.extract_vocab_merges_from_model`.)
"""

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from itertools import pairwise
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from larksong.engine.backends.model_store import cache_folder

_REQUIREMENT = "dashscope==2.0.2"
_MEMBER = "dashscope/resources/qwen.tiktoken"
_SHA256 = "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186"
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Qwen2.5's and Qwen3's added tokens in the order of their ids, from 151643 on. Those of the second list are
# `special: false` in Qwen's own files, although they are markers.
_SPECIAL = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>"),
    *("<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
]
_NOT_SPECIAL = [
    *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>"),
    *("<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"),
]


class NotReachable(Exception):
    """The wheel could not be downloaded."""


def qwen_tokenizer() -> Tokenizer:
    """The tokenizer, from the cache when it was made before. Raises NotReachable."""
    target = cache_folder() / "tests" / "qwen-tokenizer-v1.json"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as partial:
            file = Path(partial) / "tokenizer.json"
            _build(_ranks(Path(partial))).save(str(file), pretty=False)
            os.replace(file, target)
    return Tokenizer.from_file(str(target))


def _ranks(folder: Path) -> dict[bytes, int]:
    """Byte strings of the vocabulary, ranks 0, 1, …, in order."""
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(folder)]
    done = subprocess.run([*pip, _REQUIREMENT], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotReachable(f"pip could not download {_REQUIREMENT}: {done.stderr.strip()[-300:]}")
    with zipfile.ZipFile(next(folder.glob("dashscope-*.whl"))) as archive:
        data = archive.read(_MEMBER)
    if hashlib.sha256(data).hexdigest() != _SHA256:
        raise ValueError(f"{_MEMBER} of {_REQUIREMENT} is not the file that it was")
    lines = (line.split() for line in data.splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    assert list(ranks.values()) == list(range(len(ranks)))
    return ranks


def _build(ranks: dict[bytes, int]) -> Tokenizer:
    spelled = {token: _spell(token) for token in ranks}
    merges = [
        (spelled[left], spelled[right])
        for left, right in (_last_merge(token, ranks) for token in ranks if len(token) > 1)
    ]
    tokenizer = Tokenizer(BPE(vocab={spelled[token]: rank for token, rank in ranks.items()}, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(
        [AddedToken(marker, special=True, normalized=False) for marker in _SPECIAL]
        + [AddedToken(marker, special=False, normalized=False) for marker in _NOT_SPECIAL]
    )
    return tokenizer


def _last_merge(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        pairs = [ranks.get(left + right, len(ranks)) for left, right in pairwise(parts)]
        first = min(range(len(pairs)), key=pairs.__getitem__)
        parts[first : first + 2] = [parts[first] + parts[first + 1]]
    left, right = parts
    return left, right


def _spell(token: bytes) -> str:
    return "".join(_ALPHABET[byte] for byte in token)


def _alphabet() -> list[str]:
    """GPT-2's spelling of each byte (encoder.py of its release, `bytes_to_unicode`)."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(0x100)]


_ALPHABET = _alphabet()
