"""A mask allows exactly the tokens whose bytes the grammar reads one after the other."""

import os
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.automata.text_until import Stop
from larksong.engine.engine import Engine
from larksong.engine.grammar.grammar import Definition, Grammar
from larksong.engine.grammar.terminals import Choice, JsonString, Literal, Pattern, Role, TextUntil
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, Tool, wire_format
from tests.support.examples import examples
from tests.support.formats import every_format, every_kind
from tests.support.grammars import grammar
from tests.support.masks import ByteOracle, allowed
from tests.support.random_tools import grammar_of
from tests.support.schemas import parameters
from tests.support.turns import CALLS, TOOLS, WEATHER
from tests.support.vocabularies import cut_with_markers, vocabulary
from tests.support.walks import Walker

CONFIGURATIONS = int(os.environ.get("LARKSONG_CONFIGURATIONS", "1"))
MARKERS = ("<tool_call>", "</tool_call>", "<think>")
# Tokens across every border that the formats have: inside keys, between values, over whole markers and beyond.
# fmt: off
PIECES = (
    b"\n<", b"</", b"<parameter=", b"parameter", b"\n</parameter>", b"</parameter>\n",
    b"\n</parameter>\n<parameter=", b"\n</parameter>\n</function>\n</tool_call>", b">\n</parameter>\n<parameter=",
    b"\n</function>", b"=get", b">\n", b"<tool_call>", b"<tool", b"_call>\n<function=",
    b'<tool_call>\n{"name": "get_weather"', b"</tool_call>\n<tool", b'{"', b'"}', b'"}}', b'": ', b'": "', b'", "',
    b'",', b'":', b'"a": ', b'"a":', b", ", b"},", b"]}", b"[]", b"{}", b"[[", b"true", b"True", b"tru", b"null",
    b"None", b"12", b"1.", b".5", b"e-0", b"-", b"00", b"\\u00", b"\\ud83d", b"\\n", b'\\"', b"ab", b"abc", b"a b",
    b"abab", b"city", b'city": "', "é".encode(), "中".encode(), "😀".encode(), b"celsius", b"get_weather",
    b"aaaaaaaaaaaaaaaa", b"\n\n", b"  ", b"\n ", b"x>\n\n<", b'""', b"a</", b"a\n</parameter>\n", b"\xe4\xb8",
    b"\xad", b"\x98\x80", b"\xf0\x9f", b"\xc3", b"\xa9a", b"\xff\xfe", b'"\xc3', b"ab", b"ab",
)
# fmt: on


def turn_grammar(name: str, of: Vocabulary, policy: CallPolicy = CallPolicy()) -> Grammar:  # noqa: B008
    return wire_format(name).grammar(TOOLS, policy, of)


class SideBySide:
    """A matcher over a vocabulary and its twin over single bytes, kept at the same place."""

    def __init__(self, of: Vocabulary) -> None:
        self.vocabulary = of
        self.engine = Engine(of)
        self.oracle = ByteOracle(of)

    def start(self, make: object) -> tuple[Matcher, Matcher]:
        assert callable(make)
        return self.engine.matcher(make(self.vocabulary)), self.oracle.engine.matcher(make(self.oracle.twin))

    def check(self, matcher: Matcher, twin: Matcher) -> None:
        found = allowed(matcher.mask())
        expected = self.oracle.allowed(twin)
        assert found == expected, {self.vocabulary.tokens[i] for i in found ^ expected}
        assert found


small = pytest.fixture(scope="module")(
    lambda: [SideBySide(vocabulary(PIECES, markers)) for markers in ((), MARKERS)]
)


@every_kind
@pytest.mark.parametrize("policy", [CallPolicy(), CallPolicy(required=True, min_calls=2, max_calls=3)])
def test_along_a_turn_every_mask_is_what_single_bytes_allow(
    name: str, policy: CallPolicy, small: list[SideBySide]
) -> None:
    wire = wire_format(name)
    text = wire.render_calls(CALLS[4:6]).encode()
    rng = Random(name)
    for sides in small:
        matcher, twin = sides.start(lambda of: turn_grammar(name, of, policy))
        for token in cut_with_markers(sides.vocabulary, text, Random(1)):
            if rng.random() < 0.3:
                sides.check(matcher, twin)
            matcher.advance(token)
            sides.oracle.advance(twin, token)
        sides.check(matcher, twin)


@every_kind
@given(st.lists(parameters(), min_size=1, max_size=2), st.booleans(), st.integers(0, 2**32))
@examples(6)
def test_on_any_walk_every_mask_is_what_single_bytes_allow(
    name: str, small: list[SideBySide], schemas: list[dict[str, object]], required: bool, seed: int
) -> None:
    tools = [Tool(("get", "get_weather")[i], "", schema) for i, schema in enumerate(schemas)]
    rng = Random(seed)
    sides = rng.choice(small)
    policy = CallPolicy(required=required)
    matcher, twin = sides.start(lambda of: grammar_of(name, tools, policy, of))
    walker = Walker(sides.vocabulary)
    done: list[int] = []

    def visit(at: Matcher, choices: set[int]) -> None:
        if rng.random() < 0.3:
            sides.check(at, twin)

    while not matcher.finished and len(done) < 60:
        (token,) = walker.walk(matcher, rng, wander=1, limit=1, visit=visit)
        sides.oracle.advance(twin, token)
        done.append(token)
    sides.check(matcher, twin)


smollm2 = pytest.fixture(scope="module")(lambda smollm2_vocabulary: SideBySide(smollm2_vocabulary))
qwen = pytest.fixture(scope="module")(lambda qwen_vocabulary: SideBySide(qwen_vocabulary))


@pytest.mark.parametrize("of", ["letters", "markers", "smollm2", "qwen"])
@every_format
def test_at_random_configurations_every_mask_is_what_single_bytes_allow(
    name: str, of: str, request: pytest.FixtureRequest
) -> None:
    """A configuration a turn; every token of the vocabulary is tried, byte by byte."""
    rng = Random(name)
    if of in ("smollm2", "qwen"):
        sides: SideBySide = request.getfixturevalue(of)
    else:
        sides = request.getfixturevalue("small")[of == "markers"]
    wire = wire_format(name)
    for _ in range(CONFIGURATIONS):
        content = rng.choice(("", "Sure:\n", "A <tool_call is")) if name != "harmony" else ""
        text = content + wire.render_calls(rng.choices(CALLS, k=2))
        tokens = cut_with_markers(sides.vocabulary, text.encode(), rng)
        matcher, twin = sides.start(lambda of: turn_grammar(name, of))
        for token in tokens[: rng.randint(0, len(tokens))]:
            matcher.advance(token)
            sides.oracle.advance(twin, token)
        sides.check(matcher, twin)


STOPS = (Stop(b"\n</p>\n<p=", ("CLOSE", "NEXT")), Stop(b"\n</p>\n</f>", ("CLOSE", "LAST")))
NEAR_BOUNDS = {
    "text of three or more": TextUntil(STOPS, before="\n", minimum=3),
    "text of up to three": TextUntil(STOPS, before="\n", maximum=3),
    "text of exactly two": TextUntil(STOPS, before="\n", minimum=2, maximum=2),
    "text of up to forty": TextUntil(STOPS, before="\n", minimum=1, maximum=40),
}


@pytest.mark.parametrize("definition", NEAR_BOUNDS.values(), ids=NEAR_BOUNDS)
def test_near_the_bounds_of_a_text_masks_are_what_single_bytes_allow(definition: TextUntil) -> None:
    pieces = (
        b"</p>\n</f>",
        b"\n</p>",
        b"\n</f>",
        b"\n</p>\n<p=",
        b"ab",
        b"abcdef",
        b"</",
        b"p>\n",
        b"\n<",
        b"x\n</p>\n<p=",
    )
    sides = SideBySide(vocabulary(pieces))

    def make(of: Vocabulary) -> Grammar:
        definitions: dict[str, Definition | tuple[Definition, Role]] = {
            "OPEN": Literal("<v>\n"),
            "VALUE": (definition, Role.TEXT),
            "CLOSE": Literal("\n</p>\n"),
            "NEXT": Literal("<p="),
            "LAST": Literal("</f>"),
        }
        return grammar("start: OPEN VALUE CLOSE LAST | OPEN VALUE CLOSE NEXT", definitions, of)

    for seed in range(12):
        rng = Random(seed)
        matcher, twin = sides.start(make)
        while not matcher.finished:
            sides.check(matcher, twin)
            choices = sorted(allowed(matcher.mask()))
            favoured = [i for i in choices if i >= 256 or sides.vocabulary.tokens[i] in b"\n</p>f="]
            token = rng.choice(favoured if favoured and rng.random() < 0.8 else choices)
            matcher.advance(token)
            sides.oracle.advance(twin, token)


def test_terminals_that_match_the_same_bytes_are_read_side_by_side() -> None:
    sides = SideBySide(vocabulary((b"12", b"12,", b"1,1", b'"12"', b"ab,", b"1a", b"a1", b",1a,")))
    definitions: dict[str, Definition] = {
        "INTEGER": Pattern("0|[1-9][0-9]*"),
        "WORD": Pattern("[a-z0-9]+"),
        "SHORT": Choice((("1", None), ("12", None), ("ab", None))),
        "TEXT": JsonString(0, 3),
        "COMMA": Literal(","),
    }

    def make(of: Vocabulary) -> Grammar:
        rules = "start: list\nlist: item | list COMMA item\nitem: INTEGER COMMA SHORT | WORD COMMA WORD | TEXT COMMA INTEGER"
        return grammar(rules, definitions, of)

    for seed in range(10):
        rng = Random(seed)
        matcher, twin = sides.start(make)
        for _ in range(12):
            sides.check(matcher, twin)
            if matcher.finished:
                break
            token = rng.choice(sorted(allowed(matcher.mask())))
            matcher.advance(token)
            sides.oracle.advance(twin, token)


# -- the array


@pytest.mark.parametrize("padding", [0, 1, 31, 32, 33, 100])
def test_a_mask_is_packed_int32_words_with_bit_i_and_31_of_word_i_over_32(padding: int) -> None:
    of = vocabulary((b"ab",), padding=padding)
    matcher = Engine(of).matcher(turn_grammar("hermes", of, CallPolicy(required=True)))
    mask = matcher.mask()
    assert mask.dtype == np.int32
    assert mask.shape == ((of.width + 31) // 32,)
    assert mask.flags.c_contiguous
    for token in range(len(mask) * 32):
        bit = int(mask[token >> 5]) >> (token & 31) & 1
        assert bit == matcher.allows(token)
    assert allowed(mask) == {ord("<")}


def test_ids_beyond_the_tokens_are_never_allowed() -> None:
    of = vocabulary(padding=70)
    matcher = Engine(of).matcher(turn_grammar("hermes", of))
    everywhere = [allowed(matcher.mask())]
    for byte in b"text":
        matcher.advance(byte)
        everywhere.append(allowed(matcher.mask()))
    assert max(max(ids) for ids in everywhere) == max(of.eos_ids) < of.width - 70


def test_a_mask_cannot_be_written_to(byte_vocabulary: Vocabulary) -> None:
    matcher = Engine(byte_vocabulary).matcher(turn_grammar("hermes", byte_vocabulary))
    assert not matcher.mask().flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        matcher.mask()[0] = 0
    for token in byte_vocabulary.eos_ids:
        matcher.advance(token)
    with pytest.raises(ValueError, match="read-only"):
        matcher.mask()[0] = 0


@every_format
def test_equal_masks_are_one_object(name: str, byte_vocabulary: Vocabulary) -> None:
    part = turn_grammar(name, byte_vocabulary)
    engine = Engine(byte_vocabulary)
    text = "".join(wire_format(name).render_call(*call) + "\n" for call in CALLS)[:-1].encode()
    known: dict[bytes, int] = {}
    kept = []
    for seed in range(3):
        matcher = engine.matcher(part)
        for token in [*cut_with_markers(byte_vocabulary, text, Random(seed)), *byte_vocabulary.eos_ids]:
            mask = matcher.mask()
            kept.append(mask)
            assert known.setdefault(mask.tobytes(), id(mask)) == id(mask)
            matcher.advance(token)
    assert len(known) < len(kept) / 3


def test_a_token_over_several_borders_is_allowed_as_a_whole() -> None:
    piece = b'o"}}\n</tool_call>\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "K'
    of = vocabulary((piece,))
    matcher = Engine(of).matcher(wire_format("hermes").grammar([WEATHER], CallPolicy(required=True), of))
    prefix = b'<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo'
    for byte in prefix[:-1]:
        matcher.advance(byte)
    assert matcher.allows(256)
    assert 256 in allowed(matcher.mask())
    events = matcher.advance(256)
    assert matcher.fault is None
    assert [type(event).__name__ for event in events] == ["Json", "CallClose", "FunctionOpen", "Json"]
