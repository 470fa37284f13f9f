"""Vocabularies written down byte by byte, and texts cut into their tokens."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from random import Random
from weakref import WeakKeyDictionary

from larksong.engine.vocabulary import Vocabulary

END = "<end>"
BYTES = tuple(bytes([byte]) for byte in range(256))


@lru_cache(maxsize=64)
def vocabulary(pieces: tuple[bytes, ...] = (), markers: tuple[str, ...] = (), padding: int = 0) -> Vocabulary:
    """Ids: the 256 bytes, then `pieces`, then `markers`, then `END`; the logits are `padding` columns wider."""
    tokens = [*BYTES, *pieces]
    special = {marker: len(tokens) + i for i, marker in enumerate((*markers, END))}
    size = len(tokens) + len(special)
    return Vocabulary(
        tokens=(*tokens, *[b""] * len(special)),
        special=special,
        eos_ids=frozenset({special[END]}),
        width=size + padding,
    )


def byte_twin(of: Vocabulary) -> tuple[Vocabulary, dict[int, int]]:
    """A vocabulary of single bytes with the same markers, and its id for each marker's id of `of`."""
    names = sorted(of.special, key=of.special.__getitem__)
    special = {name: 256 + i for i, name in enumerate(names)}
    renamed = {of.special[name]: special[name] for name in names}
    twin = Vocabulary(
        tokens=(*BYTES, *[b""] * len(special)),
        special=special,
        eos_ids=frozenset(renamed[token] for token in of.eos_ids),
        width=256 + len(special),
    )
    return twin, renamed


_IDS: WeakKeyDictionary[Vocabulary, tuple[dict[bytes, int], int]] = WeakKeyDictionary()


def _ids(of: Vocabulary) -> tuple[dict[bytes, int], int]:
    found = _IDS.get(of)
    if found is None:
        ids = {token: i for i, token in enumerate(of.tokens) if token}
        found = _IDS[of] = ids, max(map(len, ids))
    return found


def cut(of: Vocabulary, data: bytes, rng: Random | None = None) -> list[int]:
    """`data` in tokens of the vocabulary: the longest ones, or with `rng` any that fit. Markers are bytes too."""
    ids, longest = _ids(of)
    found, at = [], 0
    while at < len(data):
        fitting = [size for size in range(1, longest + 1) if data[at : at + size] in ids]
        size = rng.choice(fitting) if rng else fitting[-1]
        found.append(ids[data[at : at + size]])
        at += size
    return found


def cut_with_markers(of: Vocabulary, data: bytes, rng: Random | None = None) -> list[int]:
    """Like `cut`, but markers that the vocabulary holds are their own tokens."""
    found: list[int] = []
    for piece in split_markers(data, [marker.encode() for marker in of.special]):
        token = of.special.get(piece.decode(errors="replace"))
        found += cut(of, piece, rng) if token is None else [token]
    return found


def split_markers(data: bytes, markers: Iterable[bytes]) -> Iterator[bytes]:
    """`data` as a sequence of pieces; each marker that occurs is a piece of its own."""
    wanted = list(markers)
    while data:
        at, marker = min(((data.find(m), m) for m in wanted if m in data), default=(len(data), b""))
        if at:
            yield data[:at]
        if marker:
            yield marker
        data = data[at + len(marker) :]


def text_of(of: Vocabulary, tokens: Sequence[int]) -> bytes:
    """The bytes of tokens; markers are spelled out, ends are not."""
    names = {token: name.encode() for name, token in of.special.items() if token not in of.eos_ids}
    return b"".join(
        of.tokens[token] if token < len(of.tokens) and of.tokens[token] else names.get(token, b"")
        for token in tokens
    )
