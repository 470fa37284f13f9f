"""The cost of a way is the fewest tokens that write its pieces."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.lexing.path import ENDED, UNREACHABLE, Path
from larksong.engine.lexing.trie import Position, Trie
from tests.support.examples import examples

LETTERS = b"ab<"


def root(*tokens: bytes) -> Position:
    return Trie(tokens, len(tokens)).root


def way(*pieces: bytes | int) -> Path:
    path = ENDED
    for piece in reversed(pieces):
        path = Path(piece, path)
    return path


def fewest(text: bytes, tokens: list[bytes]) -> int:
    """The fewest tokens that write `text`, by trying all of them in turn."""
    costs = [0] + [UNREACHABLE] * len(text)
    for end in range(1, len(text) + 1):
        for token in tokens:
            if token and text[:end].endswith(token):
                costs[end] = min(costs[end], costs[end - len(token)] + 1)
    return costs[-1]


texts = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=5).map(bytes)


@given(st.lists(texts, max_size=8, unique=True), st.lists(texts | st.just(7), max_size=8))
@examples(100)
def test_cost_is_the_fewest_tokens_of_the_text_between_special_tokens(
    tokens: list[bytes], pieces: list[bytes | int]
) -> None:
    alphabet = [*dict.fromkeys([*tokens, *(bytes((byte,)) for byte in LETTERS)])]
    path = way(*pieces)
    runs: list[bytes] = [b""]
    for piece in pieces:
        if isinstance(piece, int):
            runs.append(b"")
        else:
            runs[-1] += piece
    special = len(runs) - 1
    assert path.cost(root(*alphabet)) == special + sum(fewest(run, alphabet) for run in runs)
    assert path.size == special + sum(map(len, runs)) >= path.cost(root(*alphabet))
    assert list(path) == pieces


def test_a_token_may_reach_over_several_pieces() -> None:
    at = root(b"a", b"b", b"c", b"abc")
    assert way(b"a", b"b", b"c").cost(at) == 1
    assert way(b"a", b"b", 9, b"c").cost(at) == 4


def test_some_token_lowers_the_cost_by_one() -> None:
    rng = Random(5)
    for _ in range(50):
        tokens = [bytes(rng.choices(LETTERS, k=rng.randint(1, 4))) for _ in range(6)]
        alphabet = [*dict.fromkeys([*tokens, *(bytes((byte,)) for byte in LETTERS)])]
        at, text = root(*alphabet), bytes(rng.choices(LETTERS, k=12))
        while text:
            cost = way(text).cost(at)
            rests = [text.removeprefix(token) for token in alphabet if text.startswith(token)]
            assert min(way(rest).cost(at) for rest in rests) == cost - 1
            text = rng.choice(rests)


def test_without_a_needed_byte_the_end_is_unreachable() -> None:
    assert way(b"ab").cost(root(b"a")) >= UNREACHABLE


def test_very_long_ways_need_no_recursion() -> None:
    assert way(*[b"a"] * 20_000).cost(root(b"a", b"aaaa")) == 5_000
