"""What each token id of a model stands for: its bytes, or a marker apart from text."""

import hashlib
import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from tokenizers import AddedToken, Tokenizer

from larksong.engine.errors import EngineError

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_PIECE = re.compile(r"｜\w+｜")
_SENTENCEPIECE_SPACE = "\u2581"
# What no grammar can do without: ASCII text, and the bytes that complete a character once it was begun.
_NEEDED_BYTES = frozenset({0x0A, *range(0x20, 0x7F), *range(0x80, 0xC0)})


class VocabularyError(EngineError, ValueError):
    """A tokenizer whose token ids cannot be mapped to bytes exactly; the message says why."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Token ids of one model as bytes. Compared by identity; `fingerprint` compares by content.

    Exact for every text that holds no marker: the bytes of the ids that the tokenizer encodes it to, joined
    by `decode`, are the bytes of the text after the tokenizer's own Unicode normalisation. Several ids may
    stand for the same bytes. A vocabulary may lack a control character or the first byte of a rare script
    (SmolLM2's lacks 0x04 and 0xF1 among others): its tokenizer drops those from a text, no mask offers them.

    Which added tokens are text? A special one never is: models use it as a marker, and a grammar matches it
    by id. The flag alone does not find all markers, though: Qwen's `<tool_call>` and `<think>` are added
    tokens with `special: false`. So an added token that is not special is text only if it has no punctuation
    at all (runs of blanks, a letter); a marker always has some. And a token between fullwidth bars
    (`｜DSML｜`) is no whole marker but a piece of several (`<｜DSML｜invoke name="`): it stands for letters.
    """

    tokens: tuple[bytes, ...] = field(repr=False)
    """Id to bytes; b"" for markers and for ids that stand for nothing."""
    special: Mapping[str, int]
    """Content to id of the tokens apart from text."""
    eos_ids: frozenset[int]
    """Ids that end a turn."""
    width: int
    """Columns of the model's logits, at least len(tokens); a mask has ceil(width / 32) words."""
    prefix: bytes = b""
    """What the tokenizer writes before an encoded text though the text lacks it: b" " for SentencePiece with
    a dummy prefix, else b"". Some such tokenizers encode a text that begins with a blank like one without."""

    @cached_property
    def kept(self) -> dict[Hashable, Any]:
        """What others made for this vocabulary and want to find again: it goes when the vocabulary goes.

        No copy has it.
        """
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "kept"}

    def __post_init__(self) -> None:
        _ = self.kept  # made now, so that no two threads make it
        if self.width < len(self.tokens):
            raise VocabularyError(f"{len(self.tokens)} tokens do not fit into logits of width {self.width}")
        for token in (*self.special.values(), *self.eos_ids):
            if not 0 <= token < self.width:
                raise VocabularyError(f"id {token} is not in logits of width {self.width}")

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: Tokenizer | str | Path,
        *,
        eos: Iterable[str | int] = (),
        width: int | None = None,
    ) -> Self:
        """Read a Hugging Face tokenizer file: byte-level BPE, or SentencePiece with byte fallback.

        `eos`: contents or ids of the tokens that end a turn. `width`: columns of the logits; ids beyond it
        are left out, since the model cannot write them.

        Raises VocabularyError for a file that is no tokenizer, one of another kind, one that lacks a needed
        byte, and an `eos` that is not a token.
        """
        if not isinstance(tokenizer, Tokenizer):
            tokenizer = _load(Path(tokenizer))
        to_bytes = _token_reader(tokenizer)
        added = tokenizer.get_added_tokens_decoder()
        ids = tokenizer.get_vocab(with_added_tokens=True)
        size = max(ids.values(), default=-1) + 1
        if width is not None:
            size = min(size, width)
        eos_ids = frozenset(_eos_id(tokenizer, token, size) for token in eos)
        unknown = getattr(tokenizer.model, "unk_token", None)

        tokens = [b""] * size
        special: dict[str, int] = {}
        for content, token in sorted(ids.items(), key=itemgetter(1)):
            if token >= size:
                continue
            text = _added_text(added[token], to_bytes) if token in added else None
            if token in eos_ids or content == unknown or (token in added and text is None):
                special[content] = token
            else:
                tokens[token] = text if text is not None else to_bytes(content, token)
        _require_all_bytes(tokens)
        return cls(
            tokens=tuple(tokens),
            special=MappingProxyType(special),
            eos_ids=eos_ids,
            width=size if width is None else width,
            prefix=_prefix(tokenizer),
        )

    def text(self, token: int) -> bytes:
        """The bytes of a token; none of a marker, and of a column of the logits that is no token's."""
        return self.tokens[token] if token < len(self.tokens) else b""

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of a whole encoded text, the tokenizer's own prefix left out; markers give nothing."""
        return b"".join(self.tokens[token] for token in ids).removeprefix(self.prefix)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the content: equal for two vocabularies that a grammar cannot tell apart."""
        digest = hashlib.sha256()
        apart = [len(self.tokens), self.width, sorted(self.eos_ids), sorted(self.special.items())]
        digest.update(json.dumps(apart).encode())
        digest.update(np.fromiter(map(len, self.tokens), "<u4", len(self.tokens)).tobytes())
        digest.update(b"".join(self.tokens))
        return digest.hexdigest()


def _load(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the tokenizers library raises nothing more precise
        raise VocabularyError(f"{path} is not a tokenizer.json: {error}") from error


def _components(part: Any) -> Iterator[dict[str, Any]]:
    """The settings of a tokenizer part (normalizer, pre-tokenizer, decoder), sequences flattened."""
    if part is None:
        return
    pending = [json.loads(part.__getstate__())]
    while pending:
        settings = pending.pop(0)
        if settings["type"] == "Sequence":
            nested = next(value for value in settings.values() if isinstance(value, list))
            pending = nested + pending
        else:
            yield settings


def _kinds(part: Any) -> set[str]:
    return {settings["type"] for settings in _components(part)}


def _token_reader(tokenizer: Tokenizer) -> Callable[[str, int], bytes]:
    """How the tokenizer's vocabulary spells bytes: a function of (token, id)."""
    model = tokenizer.model
    if "ByteLevel" in _kinds(tokenizer.decoder) | _kinds(tokenizer.pre_tokenizer):
        reader = _byte_level_bytes
    elif getattr(model, "byte_fallback", False) or "ByteFallback" in _kinds(tokenizer.decoder):
        reader = _byte_fallback_bytes
    else:
        raise VocabularyError(
            f"the tokenizer ({type(model).__name__}) is neither byte-level nor has it byte fallback: "
            "not every text can be written with its tokens"
        )
    for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
        if getattr(model, affix, None):
            raise VocabularyError(
                f"the tokenizer marks parts of words ({affix}): its tokens do not join to text"
            )
    return reader


def _byte_level_alphabet() -> dict[int, int]:
    """GPT-2's alphabet, character to byte: printable Latin-1 stands for itself, the 68 others for U+0100 on.

    Source: `bytes_to_unicode` of the GPT-2 release (encoder.py).
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    rest = [byte for byte in range(0x100) if byte not in printable]
    alphabet = {byte: byte for byte in printable} | {0x100 + i: byte for i, byte in enumerate(rest)}
    # A Latin-1 character outside the alphabet must not pass for a byte: send it where Latin-1 ends.
    return dict.fromkeys(rest, 0xFFFF) | alphabet


_BYTE_LEVEL = _byte_level_alphabet()


def _byte_level_bytes(token: str, token_id: int) -> bytes:
    try:
        return token.translate(_BYTE_LEVEL).encode("latin-1")
    except UnicodeEncodeError:
        raise VocabularyError(
            f"token {token_id} ({token!r}) is not spelled in the byte-level alphabet"
        ) from None


def _byte_fallback_bytes(token: str, token_id: int) -> bytes:
    if match := _BYTE_TOKEN.fullmatch(token):
        return bytes([int(match[1], 16)])
    return token.replace(_SENTENCEPIECE_SPACE, " ").encode()


def _added_text(token: AddedToken, to_bytes: Callable[[str, int], bytes]) -> bytes | None:
    """The bytes of an added token that is text, None for a marker. See Vocabulary for the rule."""
    # Added tokens are matched in the text itself: they are spelled as text even in a byte-level vocabulary.
    text = token.content
    if to_bytes is _byte_fallback_bytes:
        text = text.replace(_SENTENCEPIECE_SPACE, " ")
    is_text = not token.special and all(char.isspace() or char.isalnum() for char in text)
    return text.encode() if is_text or _PIECE.fullmatch(text) else None


def _eos_id(tokenizer: Tokenizer, eos: str | int, size: int) -> int:
    token = tokenizer.token_to_id(eos) if isinstance(eos, str) else eos
    if token is None or not 0 <= token < size:
        raise VocabularyError(f"the end-of-sequence token {eos!r} is not in the vocabulary of {size} tokens")
    return token


def _require_all_bytes(tokens: Iterable[bytes]) -> None:
    single = {token[0] for token in tokens if len(token) == 1}
    if missing := sorted(_NEEDED_BYTES - single):
        listed = ", ".join(f"0x{byte:02X}" for byte in missing[:8]) + (", …" if len(missing) > 8 else "")
        raise VocabularyError(f"no token for the bytes {listed}: a text that holds one could not be written")


def _prefix(tokenizer: Tokenizer) -> bytes:
    for settings in _components(tokenizer.normalizer):
        if settings["type"] == "Prepend" and settings["prepend"] in (_SENTENCEPIECE_SPACE, " "):
            return b" "
    for settings in _components(tokenizer.pre_tokenizer):
        if settings["type"] == "Metaspace" and settings["prepend_scheme"] != "never":
            return b" "
        if settings["type"] == "ByteLevel" and settings["add_prefix_space"]:
            return b" "
    return b""
